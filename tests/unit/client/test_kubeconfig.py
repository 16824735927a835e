"""Kubeconfig files and service accounts: what they mean, and what is said of mistakes."""

from __future__ import annotations

import base64
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from kubesched.client import kubeconfig
from kubesched.client.access import ClusterAccess
from kubesched.client.kubeconfig_user import Impersonated
from kubesched.client.rest import ApiClient
from kubesched.clock import VirtualClock
from kubesched.errors import KubeconfigError
from tests.support.servers import Exchange, JsonObject, ScriptedServer, answer

from .conftest import Run

NO_ENVIRONMENT: dict[str, str] = {}


def _document(
    *, cluster: JsonObject | None = None, user: JsonObject | None = None, **fields: Any
) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "preferences": {},
        "clusters": [
            {"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        **fields,
    }


def _write(path: Path, document: JsonObject) -> Path:
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config"


def _load(file: Path, document: JsonObject, **options: Any) -> ClusterAccess:
    options.setdefault("environment", NO_ENVIRONMENT)
    return kubeconfig.load(_write(file, document), **options)


async def _header(access: ClusterAccess) -> str | None:
    return await access.credentials.authorization_header()


class TestFindingFiles:
    def test_the_file_that_is_named_is_used_alone(self, tmp_path: Path) -> None:
        named = _write(tmp_path / "a", _document(cluster={"server": "https://a"}))
        other = _write(tmp_path / "b", _document(cluster={"server": "https://b"}))

        access = kubeconfig.load(named, environment={"KUBECONFIG": str(other)})

        assert access.server.url == "https://a:443"

    def test_home_is_looked_at_last(self, tmp_path: Path) -> None:
        (tmp_path / ".kube").mkdir()
        _write(tmp_path / ".kube" / "config", _document())

        access = kubeconfig.load(environment={"HOME": str(tmp_path)})

        assert access.server.url == "https://10.0.0.1:6443"

    def test_several_files_are_merged_and_the_first_wins(self, tmp_path: Path) -> None:
        first = {
            "current-context": "x",
            "users": [{"name": "u", "user": {"token": "first"}}],
            "clusters": [],
        }
        second = _document(
            cluster={"server": "https://second"},
            user={"token": "second", "as": "nobody"},
            contexts=[{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        )
        names = [
            str(_write(tmp_path / "1", first)),
            "",
            str(tmp_path / "missing"),
            str(_write(tmp_path / "2", second)),
        ]

        access = kubeconfig.load(environment={"KUBECONFIG": ":".join(names)})

        assert access.server.host == "second"
        assert access.namespace == "ns"
        assert access.headers == ()  # all of the first file's user, nothing of the second's

    def test_no_file_at_all(self, tmp_path: Path) -> None:
        with pytest.raises(KubeconfigError, match=r"no kubeconfig found .*looked for /x/y, /z"):
            kubeconfig.load(environment={"KUBECONFIG": "/x/y:/z"})
        with pytest.raises(KubeconfigError, match=r"looked for .*/.kube/config"):
            kubeconfig.load(environment={"HOME": str(tmp_path)})

    def test_a_named_file_that_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(KubeconfigError, match=r"cannot read kubeconfig .*/gone: No such file"):
            kubeconfig.load(tmp_path / "gone")


class TestContexts:
    def test_another_context_can_be_chosen(self, file: Path) -> None:
        document = _document()
        document["clusters"].append({"name": "d", "cluster": {"server": "http://d:8080"}})
        document["contexts"].append({"name": "other", "context": {"cluster": "d"}})

        assert _load(file, document, context="other").server.url == "http://d:8080"

    @pytest.mark.parametrize(
        ("change", "complaint"),
        [
            ({"current-context": ""}, "config: current-context is not set; .* one of: main"),
            (
                {"current-context": "x"},
                "config: current-context: context 'x' does not exist; there is: main",
            ),
            (
                {"contexts": [{"name": "main", "context": {"cluster": "z"}}]},
                r"config: contexts\[main\].cluster: cluster 'z' does not exist; there is: c",
            ),
            (
                {"contexts": [{"name": "main", "context": {"cluster": "c", "user": "z"}}]},
                r"config: contexts\[main\].user: user 'z' does not exist; there is: u",
            ),
            ({"clusters": [{"name": "c"}]}, r"clusters\[c\].server: .* address is missing"),
            (
                {"users": [{"name": "u"}, {"name": "u"}]},
                "config: users: duplicate name 'u'",
            ),
        ],
    )
    def test_mistakes(self, file: Path, change: JsonObject, complaint: str) -> None:
        with pytest.raises(KubeconfigError, match=complaint):
            _load(file, _document(**change))

    def test_a_context_that_does_not_exist(self, file: Path) -> None:
        with pytest.raises(KubeconfigError, match="contexts: context 'nope' does not exist"):
            _load(file, _document(), context="nope")


class TestServers:
    def test_master_replaces_the_address_and_forgets_the_name(self, file: Path) -> None:
        access = _load(
            file, _document(cluster={"tls-server-name": "x"}), master="https://other:1/base/"
        )

        assert access.server.url == "https://other:1/base"
        assert access.tls_server_name == ""

    def test_master_needs_no_file(self, tmp_path: Path) -> None:
        environment = {"KUBECONFIG": str(tmp_path / "missing")}

        access = kubeconfig.load(master="http://127.0.0.1:8080", environment=environment)

        assert access.server.url == "http://127.0.0.1:8080"

    def test_a_bare_address_is_plain_unless_something_speaks_of_tls(self, file: Path) -> None:
        plain = _load(file, _document(cluster={"server": "localhost:8080"}))
        secure = _load(
            file,
            _document(cluster={"server": "api:6443", "insecure-skip-tls-verify": True}),
        )

        assert plain.server.url == "http://localhost:8080"
        assert secure.server.url == "https://api:6443"

    @pytest.mark.parametrize("server", ["ftp://x", "https://", "https://a:b"])
    def test_a_bad_address(self, file: Path, server: str) -> None:
        with pytest.raises(KubeconfigError, match=r"config: clusters\[c\].server: "):
            _load(file, _document(cluster={"server": server}))

    def test_an_ipv6_address(self, file: Path) -> None:
        access = _load(file, _document(cluster={"server": "https://[fd00::1]:6443"}))

        assert (access.server.host, access.server.address) == ("fd00::1", "[fd00::1]:6443")

    def test_credentials_are_not_sent_without_tls(self, run_once: Run, file: Path) -> None:
        access = _load(
            file, _document(cluster={"server": "http://x"}, user={"token": "t", "as": "a"})
        )

        assert run_once(_header(access)) is None
        assert access.ssl_context is None
        assert access.headers == (("Impersonate-User", "a"),)

    def test_the_proxy_of_the_file_and_of_the_environment(self, file: Path) -> None:
        environment = {"HTTPS_PROXY": "http://env:1"}
        own = _load(file, _document(cluster={"proxy-url": "http://own:2"}), environment=environment)
        env = _load(file, _document(), environment=environment)
        none = _load(file, _document())

        assert own.proxy is not None
        assert own.proxy.address == "own:2"
        assert env.proxy is not None
        assert env.proxy.address == "env:1"
        assert none.proxy is None

    def test_a_bad_proxy(self, file: Path) -> None:
        with pytest.raises(KubeconfigError, match=r"clusters\[c\].proxy-url: unsupported scheme"):
            _load(file, _document(cluster={"proxy-url": "gopher://x"}))


class TestAuthorities:
    def test_from_data_and_from_a_file_beside_it(
        self, file: Path, authority_pem: str, tmp_path: Path
    ) -> None:
        (tmp_path / "ca.crt").write_text(authority_pem)
        data = base64.encodebytes(authority_pem.encode()).decode()  # with line breaks
        for cluster in (
            {"certificate-authority": "ca.crt"},
            {"certificate-authority-data": data},
            {"certificate-authority": "missing", "certificate-authority-data": data},
        ):
            access = _load(file, _document(cluster=cluster))
            assert access.ssl_context is not None
            assert len(access.ssl_context.get_ca_certs()) == 1

    def test_nobody_is_trusted_more_than_asked(self, file: Path) -> None:
        access = _load(file, _document(cluster={"insecure-skip-tls-verify": True}))

        assert access.ssl_context is not None
        assert access.ssl_context.verify_mode == ssl.CERT_NONE

    @pytest.mark.parametrize(
        ("cluster", "complaint"),
        [
            ({"certificate-authority-data": "%%%"}, "certificate-authority-data: not base64"),
            (
                {"certificate-authority-data": base64.b64encode(b"hello").decode()},
                "certificate-authority-data: not a PEM certificate",
            ),
            (
                {"certificate-authority-data": base64.b64encode(b"\xff\xfe").decode()},
                "certificate-authority-data: not a PEM certificate",
            ),
            (
                {"certificate-authority": "gone.crt"},
                "certificate-authority: cannot read .*/gone.crt: No such file",
            ),
            ({"certificate-authority": "config"}, "certificate-authority: not a PEM certificate"),
        ],
    )
    def test_mistakes(self, file: Path, cluster: JsonObject, complaint: str) -> None:
        with pytest.raises(KubeconfigError, match=rf"config: clusters\[c\].{complaint}") as error:
            _load(file, _document(cluster=cluster))
        assert "\n" not in str(error.value)

    def test_an_authority_that_would_not_be_asked(self, file: Path, authority_pem: str) -> None:
        data = base64.b64encode(authority_pem.encode()).decode()
        cluster = {"certificate-authority-data": data, "insecure-skip-tls-verify": True}
        with pytest.raises(KubeconfigError, match="remove one of the two"):
            _load(file, _document(cluster=cluster))


class TestUsers:
    @pytest.mark.parametrize(
        ("user", "header"),
        [
            ({}, None),
            ({"token": "t"}, "Bearer t"),
            ({"username": "a", "password": "b"}, "Basic YTpi"),
        ],
    )
    def test_headers(self, run_once: Run, file: Path, user: JsonObject, header: str | None) -> None:
        assert run_once(_header(_load(file, _document(user=user)))) == header

    def test_a_token_file_counts_more_than_the_token(
        self, run_once: Run, file: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "tok").write_text("from-file\n")
        access = _load(file, _document(user={"token": "inline", "tokenFile": "tok"}))

        assert run_once(_header(access)) == "Bearer from-file"

    def test_impersonation(self, file: Path) -> None:
        user = {
            "as": "jane",
            "as-uid": "7",
            "as-groups": ["dev", "ops"],
            "as-user-extra": {"example.com/project": ["a", "b"], "Reason": ["c"]},
        }

        assert _load(file, _document(user=user)).headers == (
            ("Impersonate-User", "jane"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "dev"),
            ("Impersonate-Group", "ops"),
            ("Impersonate-Extra-Reason", "c"),
            ("Impersonate-Extra-example.com%2Fproject", "a"),
            ("Impersonate-Extra-example.com%2Fproject", "b"),
        )

    def test_another_user_may_be_impersonated_than_the_kubeconfigs(self, file: Path) -> None:
        document = _document(user={"as": "jane", "as-groups": ["dev"]})

        user_alone = _load(file, document, impersonated=Impersonated("joe"))
        both = _load(file, _document(), impersonated=Impersonated("joe", ("ops", "qa")))
        neither = _load(file, document, impersonated=Impersonated())

        assert user_alone.headers == (("Impersonate-User", "joe"), ("Impersonate-Group", "dev"))
        assert both.headers == (
            ("Impersonate-User", "joe"),
            ("Impersonate-Group", "ops"),
            ("Impersonate-Group", "qa"),
        )
        assert neither.headers == (("Impersonate-User", "jane"), ("Impersonate-Group", "dev"))

    def test_groups_alone_cannot_be_impersonated(self, file: Path) -> None:
        with pytest.raises(KubeconfigError, match="need a user to impersonate"):
            _load(file, _document(), impersonated=Impersonated(groups=("ops",)))

    @pytest.mark.parametrize("inline", [True, False])
    def test_client_certificates(
        self, file: Path, tmp_path: Path, authority: trustme.CA, inline: bool
    ) -> None:
        pair = authority.issue_cert("x")
        certificate, key = pair.cert_chain_pems[0].bytes(), pair.private_key_pem.bytes()
        (tmp_path / "c.crt").write_bytes(certificate)
        (tmp_path / "c.key").write_bytes(key)
        user = (
            {
                "client-certificate-data": base64.b64encode(certificate).decode(),
                "client-key-data": base64.b64encode(key).decode(),
            }
            if inline
            else {"client-certificate": "c.crt", "client-key": str(tmp_path / "c.key")}
        )

        _load(file, _document(user=user))  # a certificate that does not load is an error

    @pytest.mark.parametrize(
        ("user", "complaint"),
        [
            ({"token": "t", "username": "u"}, ": more than one authentication method"),
            ({"tokenFile": "gone"}, ".tokenFile: cannot read token file .*/gone: No such file"),
            ({"token": "a\nb"}, ".token: not a token"),
            ({"auth-provider": {"name": "gcp"}}, ".auth-provider: no longer supported"),
            ({"client-certificate": "c"}, ": client-certificate needs its key"),
            (
                {"client-certificate": "gone", "client-key": "gone"},
                ".client-certificate: cannot read .*/gone",
            ),
            (
                {"client-certificate": "config", "client-key": "config"},
                ": client-certificate and client-key are not a PEM",
            ),
            (
                {"client-certificate-data": "!", "client-key-data": "!"},
                ".client-certificate-data: not base64",
            ),
            ({"as-groups": ["g"]}, ": as-uid, as-groups and as-user-extra need a user"),
            ({"as": "a\r\nX: y"}, ": .* cannot be sent as Impersonate-User"),
            ({"exec": {"apiVersion": "x", "command": "c"}}, ".exec.apiVersion: must be"),
            ({"exec": {"command": "c"}}, r".exec.apiVersion: .* not \(none\)"),
            (
                {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}},
                ".exec.command: the plugin's program is missing",
            ),
            (
                {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "c"}},
                ".exec.interactiveMode: must be one of Never, IfAvailable, Always",
            ),
            (
                {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1beta1",
                        "command": "c",
                        "env": [{"value": "x"}],
                    }
                },
                ".exec.env: a variable without a name",
            ),
        ],
    )
    def test_mistakes(self, file: Path, user: JsonObject, complaint: str) -> None:
        with pytest.raises(KubeconfigError, match=rf"config: users\[u\]{complaint}") as error:
            _load(file, _document(user=user))
        assert "\n" not in str(error.value)

    def test_an_exec_plugin_beside_the_file(
        self, run_once: Run, file: Path, tmp_path: Path
    ) -> None:
        plugin = tmp_path / "bin" / "login"
        plugin.parent.mkdir()
        plugin.write_text(
            "#!/bin/sh\n"
            f'printf "%s" "$KUBERNETES_EXEC_INFO" > {tmp_path}/info\n'
            'echo \'{"apiVersion":"client.authentication.k8s.io/v1beta1",'
            '"status":{"token":"from-plugin"}}\'\n'
        )
        plugin.chmod(0o755)
        document = _document(
            cluster={
                "extensions": [
                    {
                        "name": "client.authentication.k8s.io/exec",
                        "extension": {"audience": "me", "since": "2020-01-01"},
                    }
                ]
            },
            user={
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1beta1",
                    "command": "./bin/login",
                    "args": None,
                    "env": None,
                    "provideClusterInfo": True,
                }
            },
        )

        assert run_once(_header(_load(file, document))) == "Bearer from-plugin"
        info = (tmp_path / "info").read_text()
        assert '"server":"https://10.0.0.1:6443"' in info
        assert '"config":{"audience":"me","since":"2020-01-01"}' in info


class TestBadFiles:
    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("a: b: c", "config: not YAML: .*line 1"),
            ("[" * 100_000, "config: not YAML: line 1: nested more than 100 levels deep"),
            ("users: &a [*a]", "config: not YAML: nested more than 100 levels deep"),
            ("a: !!int x", "config: not YAML: a value that is not what its tag says: "),
            ("- a\n- b", "config: not a kubeconfig: Expected `object`, got `array`"),
            ("clusters: 7", r"config: not a kubeconfig: .*\$.clusters"),
            ("users:\n- name: u\n  user:\n    token: 5", r"Expected `str`, got `int` .*\.token"),
            ("kind: Pod", "config: kind: want Config, not Pod"),
            ("", "config: current-context is not set"),
        ],
    )
    def test_they_are_described_in_one_line(self, file: Path, text: str, complaint: str) -> None:
        file.write_text(text)

        with pytest.raises(KubeconfigError, match=complaint) as error:
            kubeconfig.load(file, environment=NO_ENVIRONMENT)

        assert "\n" not in str(error.value)

    def test_bytes_that_are_no_text(self, file: Path) -> None:
        file.write_bytes(b"\xff\xfe\x00")

        with pytest.raises(KubeconfigError, match=r"cannot read kubeconfig .*config"):
            kubeconfig.load(file, environment=NO_ENVIRONMENT)

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(KubeconfigError, match="Is a directory"):
            kubeconfig.load(tmp_path, environment=NO_ENVIRONMENT)

    def test_what_looks_like_a_date_is_text(self, run_once: Run, file: Path) -> None:
        file.write_text(
            yaml.safe_dump(_document(user={"token": "TOKEN"})).replace("TOKEN", "2020-01-01")
        )

        access = kubeconfig.load(file, environment=NO_ENVIRONMENT)

        assert run_once(_header(access)) == "Bearer 2020-01-01"


class TestInCluster:
    @pytest.fixture
    def folder(self, tmp_path: Path, authority_pem: str) -> Path:
        (tmp_path / "token").write_text("pod-token\n")
        (tmp_path / "ca.crt").write_text(authority_pem)
        (tmp_path / "namespace").write_text("kube-system")
        return tmp_path

    ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}  # noqa: RUF012 - never changed

    def test_the_pods_service_account(self, run_once: Run, folder: Path) -> None:
        clock = VirtualClock()
        access = kubeconfig.in_cluster(folder=folder, environment=self.ENVIRONMENT, clock=clock)

        async def main() -> None:
            assert await _header(access) == "Bearer pod-token"
            (folder / "token").write_text("rotated")
            clock.advance(60)
            assert await _header(access) == "Bearer rotated"

        assert access.server.url == "https://10.96.0.1:443"
        assert access.namespace == "kube-system"
        run_once(main())

    def test_ipv6(self, folder: Path) -> None:
        environment = {**self.ENVIRONMENT, "KUBERNETES_SERVICE_HOST": "fd00::1"}

        access = kubeconfig.in_cluster(folder=folder, environment=environment)

        assert access.server.address == "[fd00::1]:443"

    def test_outside_of_a_pod(self, folder: Path) -> None:
        with pytest.raises(KubeconfigError, match="name a file with --kubeconfig"):
            kubeconfig.in_cluster(folder=folder, environment={})

    @pytest.mark.parametrize("missing", ["token", "ca.crt"])
    def test_missing_files(self, folder: Path, missing: str) -> None:
        (folder / missing).unlink()

        with pytest.raises(KubeconfigError, match=f"{missing}: .*No such file"):
            kubeconfig.in_cluster(folder=folder, environment=self.ENVIRONMENT)

    def test_an_authority_that_is_none(self, folder: Path) -> None:
        (folder / "ca.crt").write_text("hello")

        with pytest.raises(KubeconfigError, match=r"ca.crt: cannot load"):
            kubeconfig.in_cluster(folder=folder, environment=self.ENVIRONMENT)


class TestComponents:
    def test_a_file_is_taken_before_anything_else(self, file: Path) -> None:
        _write(file, _document())

        access = kubeconfig.for_component(file, environment=NO_ENVIRONMENT)

        assert access.server.url == "https://10.0.0.1:6443"

    def test_an_address_alone_does_not_read_the_users_file(self, file: Path) -> None:
        _write(file, _document())

        access = kubeconfig.for_component(
            master="http://127.0.0.1:8080", environment={"KUBECONFIG": str(file)}
        )

        assert access.server.url == "http://127.0.0.1:8080"

    def test_nothing_means_the_pods_own(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING), pytest.raises(KubeconfigError, match="in-cluster"):
            kubeconfig.for_component(environment=NO_ENVIRONMENT)

        assert "Neither --kubeconfig nor --master was specified" in caplog.text


def test_it_all_works_together(
    run: Run, tmp_path: Path, server_tls: ssl.SSLContext, authority_pem: str
) -> None:
    async def handler(exchange: Exchange) -> bytes:
        return answer({"who": exchange.headers["authorization"], "as": exchange.header_list})

    async def main() -> None:
        async with ScriptedServer(handler, tls=server_tls) as server:
            (tmp_path / "ca.crt").write_text(authority_pem)
            document = _document(
                cluster={
                    "server": f"{server.url}/prefix",
                    "certificate-authority": "ca.crt",
                    "tls-server-name": "kubernetes.default",
                },
                user={"token": "t", "as": "jane", "as-groups": ["a", "b"]},
            )
            access = _load(tmp_path / "config", document)
            async with ApiClient(access) as client:
                await client.get("/version", type=dict)
            (exchange,) = server.requests
            assert exchange.path == "/prefix/version"
            assert exchange.headers["authorization"] == "Bearer t"
            assert exchange.headers["impersonate-user"] == "jane"
            assert [v for k, v in exchange.header_list if k == "impersonate-group"] == ["a", "b"]

    run(main())
