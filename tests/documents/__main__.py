"""What documents print and no test runs, and why: python -m tests.documents."""

from __future__ import annotations

from .markdown import documents


def main() -> None:
    """List all commands that are not run."""
    for document in documents():
        for block in document.blocks:
            if reason := block.notes.get("not run"):
                print(f"{block.where}: {reason}")
                for command in block.commands():
                    print(f"    {command.text}")


if __name__ == "__main__":
    main()
