"""YAML files of a project, read with the places of what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from penstock.errors import Diagnostic, Location
from penstock.sql.identifiers import nearest

if TYPE_CHECKING:
    import yaml
    from yaml.nodes import MappingNode, Node

Entries = Mapping[str, "Node"]
_DEEPEST = 100  # lists and mappings in one another
_PLAIN = "tag:yaml.org,2002:"  # the prefix of YAML's own tags
_PLAIN_VALUES = "write plain values: texts, numbers, dates, lists and mappings"


@dataclass(slots=True)
class Reading:
    """Nodes of YAML into values; what is wrong is a finding with its place."""

    path: Path
    rule: str
    findings: list[Diagnostic] = field(default_factory=list)

    def root(self, text: str) -> Node | None:
        """The one document of a file's text; ``None``, and a finding, where that is not YAML of
        plain values.
        """
        import yaml

        try:
            self._refuse_deep(text)
            root: Node | None = yaml.compose(text, Loader=loader())
        except yaml.YAMLError as error:
            problem = getattr(error, "problem", None) or str(error)
            hint = "correct the YAML: a colon and a blank after a name, lists by dashes"
            hint = _PLAIN_VALUES if isinstance(error, yaml.constructor.ConstructorError) else hint
            self._refuse(getattr(error, "problem_mark", None), problem, hint)
            return None
        foreign = None if root is None else _foreign(root)
        if foreign is not None:
            problem = f"the tag {foreign.tag.replace(_PLAIN, '!!')} is not known"
            self._refuse(foreign.start_mark, problem, _PLAIN_VALUES)
            return None
        return root

    def _refuse_deep(self, text: str) -> None:
        """Raise ConstructorError before PyYAML, which calls itself for each level, fails at it."""
        import yaml

        # Each level takes a bracket, or a line that is indented further.
        if text.count("[") + text.count("{") + text.count("\n") + text.count("- ") < _DEEPEST:
            return
        depth = 0
        event: Any
        for event in yaml.parse(text, Loader=loader()):
            depth += isinstance(event, yaml.events.CollectionStartEvent)
            depth -= isinstance(event, yaml.events.CollectionEndEvent)
            if depth > _DEEPEST:
                raise yaml.constructor.ConstructorError(
                    None, None, f"it is nested more than {_DEEPEST} deep", event.start_mark
                )

    def refuse_tag(self, error: yaml.constructor.ConstructorError) -> None:
        """A tag, or a key that is a list."""
        self._refuse(error.problem_mark, str(error.problem), _PLAIN_VALUES)

    def _refuse(self, mark: Any, problem: str, hint: str) -> None:
        where = Location(self.path, mark.line + 1, mark.column + 1) if mark else Location(self.path)
        self.findings.append(Diagnostic("error", problem, where, hint, "yaml"))

    def where(self, node: Node) -> Location:
        return Location(self.path, node.start_mark.line + 1, node.start_mark.column + 1)

    def error(self, node: Node, message: str, hint: str) -> None:
        self.findings.append(Diagnostic("error", message, self.where(node), hint, self.rule))

    def value(self, node: Node) -> Any:
        return loader()("").construct_object(node, deep=True)

    @overload
    def text(self, node: None) -> None: ...

    @overload
    def text(self, node: Node) -> str: ...

    def text(self, node: Node | None) -> str | None:
        """A text as it is written, be it a date or a number to YAML.

        Raises ConstructorError for a list or a mapping.
        """
        from yaml.constructor import ConstructorError
        from yaml.nodes import MappingNode, ScalarNode

        if node is not None and not isinstance(node, ScalarNode):
            kind = "mapping" if isinstance(node, MappingNode) else "list"
            problem = f"a text is expected, not a {kind}"
            raise ConstructorError(None, None, problem, node.start_mark)
        return None if node is None else str(node.value)

    def mapping(self, node: Node, what: str, known: tuple[str, ...] = ()) -> dict[str, Node]:
        """The entries of a mapping; others than ``known``, and one twice, are errors."""
        from yaml.nodes import MappingNode

        if not isinstance(node, MappingNode):
            self.error(node, f"{what} is not a mapping of names", "write name: value")
            return {}
        found: dict[str, Node] = {}
        for key, value in pairs(node):
            name = self.text(key)
            if name in found:
                self.error(key, f"{what} has {name} twice", "keep one of them")
            elif known and name not in known:
                guess = nearest(name, known)
                hint = f"did you mean {guess}?" if guess else f"known: {', '.join(known)}"
                self.error(key, f"{what} has no {name}", hint)
            else:
                found[name] = value
        return found

    def items(self, node: Node, what: str) -> list[Node]:
        from yaml.nodes import SequenceNode

        if isinstance(node, SequenceNode):
            return list(node.value)
        self.error(node, f"{what} is not a list", "begin each with a dash")
        return []


def loader() -> type[yaml.SafeLoader]:
    """YAML 1.2's booleans: ``no``, ``off`` and ``y`` are texts, such as codes of countries."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's attribute, not a field
            letter: [
                (tag, pattern)
                for tag, pattern in resolvers
                if tag != "tag:yaml.org,2002:bool" or letter in "tTfF"
            ]
            for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    return Loader


def pairs(node: MappingNode) -> Iterator[tuple[Node, Node]]:
    yield from node.value


def _foreign(root: Node) -> Node | None:
    """The first node, as written, with a tag that is not among YAML's own."""
    from yaml.nodes import CollectionNode, MappingNode

    waiting, seen = [root], set[int]()  # an alias is the node that it names
    known = {*loader().yaml_constructors, f"{_PLAIN}merge", f"{_PLAIN}value"}
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.tag not in known:
            return node
        if isinstance(node, MappingNode):
            waiting += [part for pair in reversed(node.value) for part in reversed(pair)]
        elif isinstance(node, CollectionNode):
            waiting += reversed(node.value)
    return None
