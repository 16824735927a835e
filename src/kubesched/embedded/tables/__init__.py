"""Objects as tables, for ``kubectl get``."""

from __future__ import annotations

from kubesched.embedded.tables.making import Tables, partial, partial_list

__all__ = ["Tables", "partial", "partial_list"]
