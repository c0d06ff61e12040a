"""Remember the edges of models across processes, by the fingerprints of models.

To find which slices of an input a query needs, the query is parsed. A plan of very many models has
no time for that each time. A fingerprint covers the text of a model and those of all models above
it, since which slices a model needs may follow from the query of a model two steps above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from hashlib import sha256

from penstock.model.definition.graph import Graph
from penstock.model.definition.model import Model
from penstock.model.project.serialized import pack, unpack
from penstock.model.slicing.needs import Edge
from penstock.model.slicing.slices_read import Selection

Edges = Mapping[str, tuple[Edge, ...]]


def fingerprint_models(models: Iterable[Model], graph: Graph, settings: object) -> dict[str, str]:
    """Fingerprint models.

    Args:
        models: All models of the graph.
        graph: Which model reads which.
        settings: The settings that results depend on, with a `repr` that tells them apart.

    Returns:
        The fingerprints, by the names of models.
    """
    by_name = {model.name: model for model in models}
    fingerprints: dict[str, str] = {}
    for name in graph.order():
        parents = [fingerprints[parent] for parent in graph.parents[name] if parent != name]
        content = (settings, _own_parts(by_name[name]), parents)
        fingerprints[name] = sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()
    return fingerprints


def _own_parts(model: Model) -> Mapping[str, object]:
    query = model.query
    return {
        "name": model.name,
        "target": str(model.target),
        "definition": model.definition_hash,
        "text": query.source.text,
        "embedded": [inner.source.text for inner in query.embeds.values()],
        "slices": (model.slicing, model.partition, model.time_range),
        "strategy": (model.strategy.name, model.keys, model.forward_only, model.own),
        "reads": (model.reads, model.on, model.depends_on, model.input_needs),
        "arguments": query.arguments,
    }


def remember_edges(
    models: Sequence[Model],
    fingerprints: Mapping[str, str],
    cache: MutableMapping[str, bytes],
    find_edges: Callable[[Sequence[Model]], Edges],
) -> Edges:
    """Return the edges of models, from a cache as far as it has them.

    Args:
        models: All models of the project.
        fingerprints: The fingerprints of models, by their names.
        cache: The packed edges, by fingerprints; what is missing is added.
        find_edges: Finds the edges of the models that the cache lacks.

    Returns:
        The edges, by the names of models.
    """
    by_name = {model.name: model for model in models}
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
