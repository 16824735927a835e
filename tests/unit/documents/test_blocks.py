"""Every block of every document is of a kind that its reader, and a test, can do something with."""

from __future__ import annotations

import re
import textwrap

import pytest

from tests.documents.markdown import (
    NOTES,
    ROOT,
    Block,
    Command,
    Document,
    DocumentError,
    Kind,
    documents,
)
from tests.documents.terminal import CommandFailedError
from tests.documents.unrun_commands import check

BLOCKS = [block for document in documents() for block in document.blocks]
UNRUN = [block for block in BLOCKS if "not run" in block.notes]
EXCERPTS = [block for block in BLOCKS if block.language == "python" and not block.file]


def where(block: Block) -> str:
    return block.where


def parsed(text: str) -> Document:
    return Document.parse("page.md", textwrap.dedent(text))


def only_block(text: str) -> Block:
    (block,) = parsed(text).blocks
    return block


class TestDocumentsOfThisProject:
    @pytest.mark.parametrize("block", BLOCKS, ids=where)
    def test_a_block_is_classified(self, block: Block) -> None:
        if block.kind is Kind.COMMANDS:
            assert block.commands()
        else:
            assert not block.notes

    @pytest.mark.parametrize("block", UNRUN, ids=where)
    def test_what_is_not_run_says_why_and_could_work(self, block: Block) -> None:
        reason = block.notes["not run"]
        assert len(reason.split()) > 3
        for test in re.findall(r"tests/\S+\.py", reason):
            assert (ROOT / test).is_file()
        for command in block.commands():
            check(command)

    @pytest.mark.parametrize("block", EXCERPTS, ids=where)
    def test_an_excerpt_is_in_the_source(self, block: Block) -> None:
        parts = map(re.escape, re.split(r"\n *# …\n", block.text.strip()))
        excerpt = re.compile(r"(?s:.*?)".join(parts))

        sources = (path for folder in ("src", "examples") for path in (ROOT / folder).rglob("*.py"))
        assert any(excerpt.search(path.read_text()) for path in sources)


class TestKinds:
    def test_commands_of_a_terminal_are_followed_by_what_they_print(self) -> None:
        block = only_block(
            """\
            ```console
            $ first \\
                --flag
            printed

            more
            $ second
            ```
            """
        )

        assert block.kind is Kind.COMMANDS
        first, second = block.commands()
        assert first.text == "first \\\n    --flag"
        assert first.shown == ("printed", "", "more")
        assert second == Command("page.md:1", "second", None)

    def test_commands_of_a_script_have_comments(self) -> None:
        block = only_block(
            """\
            ```sh
            # once
            make \\
              demo   # now

            make test
            ```
            """
        )

        assert [each.text for each in block.commands()] == [
            "make \\\n  demo   # now",
            "make test",
        ]

    @pytest.mark.parametrize("line", ["`day.yaml`:", "We have `x`. `day.yaml` becomes:"])
    def test_a_file_is_named_by_the_line_before_it(self, line: str) -> None:
        block = only_block(f"{line}\n\n```yaml\na: 1\n```\n")

        assert (block.kind, block.file, block.text) == (Kind.FILE, "day.yaml", "a: 1\n")

    def test_a_block_in_a_list_loses_its_indentation(self) -> None:
        block = only_block("1. Do it:\n\n   ```sh\n   make demo\n   ```\n")

        assert block.text == "make demo\n"

    def test_a_comment_goes_with_the_block_that_follows(self) -> None:
        block = only_block("<!-- not run: it takes all day -->\n\n```sh\nmake bench\n```\n")

        assert block.notes == {"not run": "it takes all day"}

    def test_there_is_a_word_for_each_note(self) -> None:
        assert all(NOTES.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Run\n\n    make demo\n", "a block by indentation"),
        ("```\nmake demo\n```\n", "without a language"),
        ("```toml\na = 1\n```\n", "no named file"),
        ("```text\n$ make demo\n```\n", "a command in a block of text"),
        ("```text\nkubectl get nodes\n```\n", "a command in a block of text"),
        ("```console\nno prompt\n```\n", "the first line is no command"),
        ("```sh\n# nothing\n```\n", "without a command"),
        ("```sh\nmake demo\n", "without an end"),
        ("<!-- not run -->\n\n```sh\nmake demo\n```\n", "a comment that tells nothing"),
        ("<!-- skip: me -->\n\n```sh\nmake demo\n```\n", "a comment that tells nothing"),
        ("<!-- not run: too long -->\n\nText.\n", "notes that no block follows"),
    ],
)
def test_a_block_that_could_escape_is_refused(text: str, said: str) -> None:
    def read() -> None:
        block = only_block(text)
        assert block.kind is not Kind.COMMANDS or block.commands()

    with pytest.raises(DocumentError, match=said):
        read()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("kubesched bench --decision", "there is no flag --decision"),
        ("kubesched benchmark", "benchmark"),
        ("kube-scheduler --confg=x", "there is no flag --confg"),
        ("make everything", "everything"),
        ("cp deploy/nothing.yaml /root", "the repository has no deploy/nothing.yaml"),
        ("helm install k deploy/helm/kubesched --set image.repo=x", "has no repo"),
        ("frobnicate", "there is no check for frobnicate"),
        ("kind create cluster --konfig x", "there is no flag --konfig"),
        ("minikube ssh --nod=x -- sudo cp --any thing", "there is no flag --nod"),
        ("kubeadm inti --config x", "not in the table of those that are documented"),
        ("docker run x", "not in the table of those that are documented"),
        ("make (", "syntax error"),
    ],
)
def test_a_command_that_is_not_run_and_cannot_work_is_refused(command: str, said: str) -> None:
    with pytest.raises(CommandFailedError, match=said):
        check(Command("page.md:1", command, None))
