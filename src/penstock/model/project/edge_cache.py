"""Remember the edges of models across processes, by the fingerprints of models.

To find which slices of an input a query needs, the query is parsed. A plan of very many models has
no time for that each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence

from penstock.model.definition.model import Model
from penstock.model.project.serialized import pack, unpack
from penstock.model.slicing.needs import Edge
from penstock.model.slicing.slices_read import Selection

Edges = Mapping[str, tuple[Edge, ...]]


def remember_edges(
    models: Sequence[Model],
    by_name: Mapping[str, Model],
    fingerprints: Mapping[str, str],
    cache: MutableMapping[str, bytes],
    find_edges: Callable[[Sequence[Model]], Edges],
) -> Edges:
    """Return the edges of models, from a cache as far as it has them.

    Args:
        models: The models whose edges are asked for.
        by_name: All models of the project, by their names.
        fingerprints: The fingerprints of models, by their names.
        cache: The packed edges, by fingerprints; what is missing is added.
        find_edges: Finds the edges of the models that the cache lacks.

    Returns:
        The edges, by the names of models.
    """
    edges: dict[str, tuple[Edge, ...]] = {}
    for model in models:
        packed = cache.get(fingerprints[model.name])
        unpacked = None if packed is None else _unpack_edges(packed, model, by_name)
        if unpacked is not None:
            edges[model.name] = unpacked
    missing = [model for model in models if model.name not in edges]
    if missing:
        new = find_edges(missing)
        for model in missing:
            edges[model.name] = new[model.name]
            cache[fingerprints[model.name]] = _pack_edges(new[model.name])
    return {model.name: edges[model.name] for model in models}


def _pack_edges(edges: Sequence[Edge]) -> bytes:
    parts = [
        (edge.upstream.name, edge.need, edge.through, edge.selection and edge.selection.parts)
        for edge in edges
    ]
    return pack(parts, ())


def _unpack_edges(
    packed: bytes, reader: Model, by_name: Mapping[str, Model]
) -> tuple[Edge, ...] | None:
    parts = unpack(packed, None)
    if parts is None:
        return None
    edges: list[Edge] = []
    for name, need, through, selected in parts:
        upstream = by_name.get(name)
        if upstream is None:
            return None
        selection = None if selected is None else Selection(reader, upstream, *selected)
        edges.append(Edge(reader, upstream, need, through, selection))
    return tuple(edges)
