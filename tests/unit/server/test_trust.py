"""Whose certificates count: what files and the cluster's ConfigMap say, now and later."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from kubesched.client.rest import ApiClient
from kubesched.errors import ClientError, ConfigError
from kubesched.server.options import AuthenticationOptions
from kubesched.server.trust import Authorities, Trust, TrustKeeper
from tests.support.servers import (
    Exchange,
    ScriptedServer,
    answer,
    event_line,
    failure,
    watch_answer,
)
from tests.support.serving import Reviewer
from tests.support.waiting import eventually

from .conftest import Run


def pem(authority: trustme.CA) -> str:
    return authority.cert_pem.bytes().decode()


def parsed(authority: trustme.CA) -> Authorities:
    return Authorities.parse(authority.cert_pem.bytes())


def keeper(
    options: AuthenticationOptions, client: ApiClient | None = None
) -> tuple[TrustKeeper, list[Trust]]:
    changes: list[Trust] = []
    return TrustKeeper(options, client, on_change=changes.append), changes


# ---------------------------------------------------------------------- files


def test_authorities_in_files(
    tmp_path: Path, client_authority: trustme.CA, proxy_authority: trustme.CA
) -> None:
    client_authority.cert_pem.write_to_path(tmp_path / "clients")
    proxy_authority.cert_pem.write_to_path(tmp_path / "proxies")
    trust = keeper(
        AuthenticationOptions(
            client_ca_file=str(tmp_path / "clients"),
            requestheader_client_ca_file=str(tmp_path / "proxies"),
            requestheader_allowed_names=("front",),
        )
    )[0].current

    assert trust.clients == parsed(client_authority)
    assert trust.front_proxy is not None
    assert trust.front_proxy.authorities == parsed(proxy_authority)
    assert trust.front_proxy.allowed_names == ("front",)
    assert trust.front_proxy.username_headers == ("x-remote-user",)
    assert trust.pem == pem(client_authority) + pem(proxy_authority)


def test_a_file_that_changes_is_read_again(
    tmp_path: Path,
    client_authority: trustme.CA,
    strange_authority: trustme.CA,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = tmp_path / "clients"
    client_authority.cert_pem.write_to_path(file)
    trust, changes = keeper(AuthenticationOptions(client_ca_file=str(file)))

    file.write_text("nonsense")
    trust.reload()
    assert trust.current.clients == parsed(client_authority)
    assert "does not contain PEM certificates; the old ones stay" in caplog.text

    strange_authority.cert_pem.write_to_path(file)
    trust.reload()
    assert changes == [Trust(clients=parsed(strange_authority))]

    trust.reload()
    assert len(changes) == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "unable to load client CA file: {}: No such file or directory"),
        ("", "unable to load client CA file: {}: does not contain PEM certificates"),
        ("junk", "unable to load client CA file: {}: does not contain PEM certificates"),
    ],
)
def test_a_file_that_is_no_good(tmp_path: Path, content: str | None, complaint: str) -> None:
    file = tmp_path / "clients"
    if content is not None:
        file.write_text(content)

    with pytest.raises(ConfigError) as refused:
        keeper(AuthenticationOptions(client_ca_file=str(file)))
    assert str(refused.value) == complaint.format(file)


# ---------------------------------------------------------------------- the ConfigMap


@contextlib.asynccontextmanager
async def following(
    reviewer: Reviewer, options: AuthenticationOptions | None = None
) -> AsyncIterator[tuple[TrustKeeper, list[Trust]]]:
    async with ScriptedServer(reviewer) as api, ApiClient(api.access) as client:
        trust, changes = keeper(options or AuthenticationOptions(), client)
        await trust.look_up()
        task = asyncio.create_task(trust.follow())
        try:
            yield trust, changes
        finally:
            task.cancel()
            await asyncio.wait({task})


def config_map(clients: trustme.CA, proxies: trustme.CA) -> dict[str, str]:
    return {
        "client-ca-file": pem(clients),
        "requestheader-client-ca-file": pem(proxies),
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }


def test_what_the_cluster_says(
    run: Run, client_authority: trustme.CA, proxy_authority: trustme.CA
) -> None:
    reviewer = Reviewer(config_map=config_map(client_authority, proxy_authority))

    async def main() -> Trust:
        async with following(reviewer) as (trust, changes):
            assert changes == [trust.current]
            return trust.current

    trust = run(main())

    assert trust.clients == parsed(client_authority)
    assert trust.front_proxy is not None
    assert trust.front_proxy.allowed_names == ("front-proxy-client",)
    assert trust.front_proxy.username_headers == ("X-Remote-User",)
    assert trust.front_proxy.group_headers == ("X-Remote-Group",)
    assert trust.front_proxy.extra_header_prefixes == ("X-Remote-Extra-",)
    assert trust.front_proxy.uid_headers == ()


def test_a_list_that_go_never_made_is_empty(
    run_once: Run, client_authority: trustme.CA, proxy_authority: trustme.CA
) -> None:
    said = {
        **config_map(client_authority, proxy_authority),
        "requestheader-allowed-names": "null",
    }

    async def main() -> Trust:
        async with following(Reviewer(config_map=said)) as (trust, _):
            return trust.current

    proxy = run_once(main()).front_proxy
    assert proxy is not None
    assert (proxy.allowed_names, proxy.username_headers) == ((), ("X-Remote-User",))


def test_flags_outrank_the_cluster(
    run_once: Run,
    tmp_path: Path,
    client_authority: trustme.CA,
    proxy_authority: trustme.CA,
    strange_authority: trustme.CA,
) -> None:
    strange_authority.cert_pem.write_to_path(tmp_path / "clients")
    reviewer = Reviewer(config_map=config_map(client_authority, proxy_authority))
    options = AuthenticationOptions(client_ca_file=str(tmp_path / "clients"))

    async def main() -> Trust:
        async with following(reviewer, options) as (trust, _):
            return trust.current

    trust = run_once(main())

    assert trust.clients == parsed(strange_authority)
    assert trust.front_proxy is not None
    assert trust.front_proxy.authorities == parsed(proxy_authority)


def test_nothing_is_looked_up_if_told_so(
    run_once: Run, client_authority: trustme.CA, proxy_authority: trustme.CA
) -> None:
    reviewer = Reviewer(config_map=config_map(client_authority, proxy_authority))

    async def main() -> Trust:
        async with following(reviewer, AuthenticationOptions(skip_lookup=True)) as (trust, _):
            return trust.current

    assert run_once(main()) == Trust()


def test_a_configmap_that_comes_later_and_changes(
    run_once: Run,
    client_authority: trustme.CA,
    strange_authority: trustme.CA,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def version(number: int, ca: str) -> dict[str, object]:
        name = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
        metadata = {**name, "uid": "1", "resourceVersion": str(number)}
        return {"metadata": metadata, "data": {"client-ca-file": ca}}

    watch = watch_answer(
        event_line("ADDED", version(2, pem(client_authority))),
        event_line("MODIFIED", version(3, "nonsense")),
        event_line("MODIFIED", version(4, pem(strange_authority))),
        event_line("DELETED", version(5, pem(strange_authority))),
        hold=True,
    )
    absent = Reviewer()

    async def serve(exchange: Exchange) -> bytes | None:
        return await (watch if exchange.query.get("watch") else absent)(exchange)

    async def main() -> None:
        async with ScriptedServer(serve) as api, ApiClient(api.access) as client:
            trust, changes = keeper(AuthenticationOptions(), client)
            await trust.look_up()
            assert trust.current == Trust()
            task = asyncio.create_task(trust.follow())
            await eventually(lambda: len(changes) == 2)
            assert [each.clients for each in changes] == [
                parsed(client_authority),
                parsed(strange_authority),
            ]
            assert "what it said before stays" in caplog.text
            assert trust.current == changes[-1]
            task.cancel()
            await asyncio.wait({task})

    run_once(main())


@pytest.mark.parametrize("tolerate", [True, False])
def test_a_lookup_that_is_refused(
    run_once: Run, caplog: pytest.LogCaptureFixture, tolerate: bool
) -> None:
    async def serve(_exchange: Exchange) -> bytes:
        return failure(403, "Forbidden", "configmaps is forbidden")

    async def main() -> None:
        async with ScriptedServer(serve) as api, ApiClient(api.access) as client:
            options = AuthenticationOptions(tolerate_lookup_failure=tolerate)
            trust, _ = keeper(options, client)
            if tolerate:
                await trust.look_up()
                return
            with pytest.raises(
                ClientError,
                match=r"unable to load configmap based request-header-client-ca-file: .*forbidden",
            ):
                await trust.look_up()

    run_once(main())

    assert "kubectl create rolebinding" in caplog.text
    assert ("Continuing without authentication configuration" in caplog.text) is tolerate


def test_a_server_that_talks_nonsense_is_tolerated_too(run_once: Run) -> None:
    async def serve(_exchange: Exchange) -> bytes:
        return answer("hello")

    async def main() -> None:
        async with ScriptedServer(serve) as api, ApiClient(api.access) as client:
            trust, _ = keeper(AuthenticationOptions(), client)
            await trust.look_up()
            assert trust.current == Trust()

    run_once(main())
