"""A Python file as it stands: its digest, and where it is not Python."""

from __future__ import annotations

from pathlib import Path

from penstock.model.files.python_code import PythonCode, read_code


def code(root: Path, text: str) -> PythonCode:
    read, findings = read_code(text, root / "models" / "s.py", root)
    assert read is not None, findings
    return read


def test_a_digest_is_of_the_code_and_of_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "api.py").write_text("from shared import deep\n")
    (tmp_path / "shared" / "deep.py").write_text("X = 1\n")
    text = "# pipeline\nimport json\nfrom shared.api import deep\n"
    first = code(tmp_path, text).digest
    assert code(tmp_path, f"# another line\n\n{text}\n").digest == first
    assert code(tmp_path, f"{text}print(1)").digest != first
    (tmp_path / "shared" / "deep.py").write_text("X = 2\n")
    assert code(tmp_path, text).digest != first
    (tmp_path / "shared" / "deep.py").write_text("X = \n")  # which the import says when it runs
    assert code(tmp_path, text).digest != first


def test_what_is_not_python_has_its_line() -> None:
    read, (finding,) = read_code("a = 1\ndef main(:\n", Path("s.py"), Path())
    assert read is None
    assert (finding.message, finding.location.line, finding.location.column) == (
        "the file is not Python: invalid syntax",
        2,
        10,
    )
