"""The notebooks run, and give what is saved in them.

After a change that alters what they give, ``python tests/test_notebooks.py`` runs them and saves
what they give now.
"""

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ABSOLUTE = re.compile(r"(?<![\w.<~/:-])/[A-Za-z_][\w.-]*/|(?<!\w)[A-Za-z]:[\\/]\w")


def read(path):
    return nbformat.read(path, as_version=4)


def execute(notebook):
    """Run a notebook in place, in a kernel that imports this repository's packages."""
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=300,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(ROOT)}},
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell):
    """All that a cell gives, as text: by kind, streams joined."""
    found = {}
    for output in cell.outputs:
        if output.output_type == "stream":
            found[output.name] = found.get(output.name, "") + output.text
        elif output.output_type == "error":
            found["error"] = f"{output.ename}: {output.evalue}"
        else:
            found.update(output.data)
    return found


def each_notebook(test):
    return pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)(test)


def test_there_are_notebooks_and_each_has_a_number_of_its_own():
    numbers = [path.name.split("-")[0] for path in NOTEBOOKS]
    assert numbers
    assert all(map(str.isdigit, numbers))
    assert len(set(numbers)) == len(numbers)


@each_notebook
def test_a_notebook_gives_what_is_saved_in_it(path):
    saved, fresh = read(path), read(path)
    where = nbformat.v4.new_code_cell(
        "import pebble, schedules\nprint(pebble.__file__, schedules.__file__)"
    )
    fresh.cells.append(where)
    execute(fresh)  # raises where a cell does
    assert all(Path(file).is_relative_to(ROOT) for file in texts(where)["stdout"].split())
    for old, new in zip(code(saved), code(fresh)[:-1], strict=True):
        assert texts(new) == texts(old), f"{path.name}: {new.source}"


@each_notebook
def test_a_saved_notebook_is_clean(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert [cell.execution_count for cell in code(notebook)] == [
        number + 1 for number in range(len(code(notebook)))
    ]
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        assert not set(cell.metadata) - {"tags"}
        assert cell.cell_type == "markdown" or not {"error", "stderr"} & set(texts(cell))
        for text in [cell.source, *map(str, texts(cell).values() if "outputs" in cell else ())]:
            assert not ABSOLUTE.search(text), text


@pytest.mark.parametrize(
    ("text", "absolute"),
    [
        ("open('/home/me/x')", True),
        ("/srv/a/b", True),
        (r"C:\Users", True),
        ("I/O / bound", False),
        ("<td>1</td></tr>", False),
        ("a/b/c", False),
        ("https://arxiv.org/abs/1", False),
    ],
)
def test_absolute_paths_are_seen(text, absolute):
    assert bool(ABSOLUTE.search(text)) == absolute


def save():
    for path in NOTEBOOKS:
        notebook = read(path)
        metadata = dict(notebook.metadata)
        execute(notebook)
        notebook.metadata = nbformat.from_dict(metadata)
        nbformat.write(notebook, path)


if __name__ == "__main__":
    save()
