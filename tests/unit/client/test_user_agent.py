"""What the API server's audit log shows of us."""

from __future__ import annotations

import re

from kubesched.client.user_agent import user_agent


def test_it_reads_as_kube_schedulers() -> None:
    form = r"kube-scheduler/v1\.37\.\d+ \([a-z0-9]+/[a-z0-9_]+\) kubesched/[0-9a-z.+]+/scheduler"
    assert re.fullmatch(form, user_agent("scheduler"))
