"""All flags of kube-scheduler, and a few of our own: name, type, default, help.

Names, types, defaults and groups are kube-scheduler's, since command lines must keep working; the
help texts are ours. A flag without effect here says so, in its help and when it is used.
"""

from __future__ import annotations

from typing import Final

from kubesched.cli.flag_kinds import (
    ADDRESS,
    ALL_INTERFACES,
    BOOL,
    CERTIFICATES,
    DURATION,
    FLOAT,
    FLOAT32,
    GATES,
    INT,
    INT32,
    INT32S,
    LEVEL,
    MAPPING,
    MODULES,
    OPTIONAL_INT,
    QUANTITY,
    STRING,
    STRINGS,
    VERSION,
    VersionFlag,
)
from kubesched.cli.flag_tls import CIPHERS, INSECURE_CIPHERS, TLS_VERSIONS
from kubesched.cli.flags import Flag, FlagSet, Group
from kubesched.config.durations import Duration
from kubesched.config.features import (
    BINARY_VERSION,
    OLDEST_EMULATED_VERSION,
    FeatureGates,
    dotted,
)

_WITHOUT_CONFIG: Final = "Does not count if --config is given."
_NO_HTTP2: Final = "HTTP/2 is not served, so this changes nothing."
_IN_ELECTION: Final = "Counts only while leader election is on."
_ALPHA: Final = "Needs the feature gate LoggingAlphaOptions."


def _duration(seconds: float) -> Duration:
    return Duration.of_seconds(seconds)


_MISC: Final = (
    Flag("config", STRING, "", "File with a KubeSchedulerConfiguration, as YAML or JSON."),
    Flag("master", STRING, "", "Address of the API server; outranks the one in the kubeconfig."),
    Flag(
        "write-config-to",
        STRING,
        "",
        "Write the complete configuration, with everything that was left to its default, to this "
        "file and exit.",
    ),
)

_SECURE_SERVING: Final = (
    Flag(
        "bind-address",
        ADDRESS,
        ALL_INTERFACES,
        "IP address that --secure-port is opened on. 0.0.0.0 and :: mean all interfaces of all "
        "families.",
    ),
    Flag(
        "cert-dir",
        STRING,
        "",
        "Folder of the serving certificate: kube-scheduler.crt and kube-scheduler.key are read "
        "from it, or made there. Empty keeps a self-signed certificate in memory. Does not count "
        "if --tls-cert-file is given.",
    ),
    Flag("disable-http2-serving", BOOL, False, "Serve HTTP/1.1 only.", no_effect=_NO_HTTP2),
    Flag(
        "http2-max-streams-per-connection",
        INT,
        0,
        "Largest number of streams in an HTTP/2 connection.",
        no_effect=_NO_HTTP2,
    ),
    Flag(
        "permit-address-sharing",
        BOOL,
        False,
        "Open the port with SO_REUSEADDR: a specific address beside a wildcard one, and no wait "
        "for sockets in TIME_WAIT.",
    ),
    Flag(
        "permit-port-sharing",
        BOOL,
        False,
        "Open the port with SO_REUSEPORT, so that several processes can share it.",
    ),
    Flag(
        "secure-port",
        INT,
        10259,
        "Port of health checks, metrics and the like, served by HTTPS to authorized clients. "
        "0 serves nothing.",
    ),
    Flag(
        "tls-cert-file",
        STRING,
        "",
        "File with the serving certificate, followed by those of its issuers. Read again when it "
        "changes.",
    ),
    Flag(
        "tls-cipher-suites",
        STRINGS,
        (),
        "Cipher suites to offer, by Go's names; all sound ones if none are named.\n"
        f"Sound: {', '.join(CIPHERS)}.\n"
        f"Insecure: {', '.join(INSECURE_CIPHERS)}.",
    ),
    Flag(
        "tls-curve-preferences",
        INT32S,
        (),
        "Key exchanges to offer, by the numbers that Go's crypto/tls.CurveID gives them, such as "
        "29 for X25519. Their order does not matter.",
    ),
    Flag(
        "tls-min-version",
        STRING,
        "",
        f"Oldest version of TLS to speak: one of {', '.join(TLS_VERSIONS)}.",
    ),
    Flag("tls-private-key-file", STRING, "", "File with the private key of --tls-cert-file."),
    Flag(
        "tls-sni-cert-key",
        CERTIFICATES,
        (),
        "Certificate and key for clients that ask for certain names: cert,key or "
        "cert,key:name,*.other.name. Without names, those in the certificate count. An exact name "
        "wins over a wildcard. May be given several times.",
    ),
)

_AUTHENTICATION: Final = (
    Flag(
        "authentication-kubeconfig",
        STRING,
        "",
        "kubeconfig of the API server that is asked who sent a token, by TokenReviews. Without it "
        "every caller with a token is anonymous, and no client CA is looked up.",
    ),
    Flag(
        "authentication-skip-lookup",
        BOOL,
        False,
        "Do not read the authentication settings that flags leave open from the cluster.",
    ),
    Flag(
        "authentication-token-webhook-cache-ttl",
        DURATION,
        _duration(10),
        "How long the answer about a token is remembered.",
    ),
    Flag(
        "authentication-tolerate-lookup-failure",
        BOOL,
        True,
        "Start even if authentication settings cannot be read from the cluster. All callers may "
        "be anonymous then.",
    ),
    Flag(
        "client-ca-file",
        STRING,
        "",
        "File with certificate authorities: who shows a certificate of theirs is known by its "
        "common name.",
    ),
    Flag(
        "requestheader-allowed-names",
        STRINGS,
        (),
        "Common names of proxies whose headers say who the caller is; any one that "
        "--requestheader-client-ca-file vouches for if none are named.",
    ),
    Flag(
        "requestheader-client-ca-file",
        STRING,
        "",
        "File with the certificate authorities of proxies whose headers say who the caller is.",
    ),
    Flag(
        "requestheader-extra-headers-prefix",
        STRINGS,
        ("x-remote-extra-",),
        "Prefixes of the headers with further facts about a caller.",
    ),
    Flag(
        "requestheader-group-headers",
        STRINGS,
        ("x-remote-group",),
        "Headers with the groups of a caller.",
    ),
    Flag(
        "requestheader-uid-headers",
        STRINGS,
        (),
        "Headers with the UID of a caller. Needs the feature gate RemoteRequestHeaderUID.",
    ),
    Flag(
        "requestheader-username-headers",
        STRINGS,
        ("x-remote-user",),
        "Headers with the name of a caller.",
    ),
)

_AUTHORIZATION: Final = (
    Flag(
        "authorization-always-allow-paths",
        STRINGS,
        ("/healthz", "/readyz", "/livez"),
        "Paths that need no authorization; a * at the end matches anything.",
    ),
    Flag(
        "authorization-kubeconfig",
        STRING,
        "",
        "kubeconfig of the API server that is asked what a caller may see, by "
        "SubjectAccessReviews. Without it only the paths of "
        "--authorization-always-allow-paths are accessible.",
    ),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        DURATION,
        _duration(10),
        "How long a permission is remembered.",
    ),
    Flag(
        "authorization-webhook-cache-unauthorized-ttl",
        DURATION,
        _duration(10),
        "How long a refusal is remembered.",
    ),
)

_DEPRECATED: Final = (
    Flag(
        "contention-profiling",
        BOOL,
        True,
        f"DEPRECATED: profile where threads wait for each other. {_WITHOUT_CONFIG}",
        no_effect="One thread does all the scheduling and waits for no lock: nothing to profile.",
    ),
    Flag(
        "kube-api-burst",
        INT32,
        100,
        f"DEPRECATED: requests to the API server that may be sent at once. {_WITHOUT_CONFIG}",
    ),
    Flag(
        "kube-api-content-type",
        STRING,
        "application/vnd.kubernetes.protobuf",
        f"DEPRECATED: encoding of requests to the API server. {_WITHOUT_CONFIG}",
        no_effect="Requests are always JSON.",
    ),
    Flag(
        "kube-api-qps",
        FLOAT32,
        50.0,
        f"DEPRECATED: requests to the API server per second. {_WITHOUT_CONFIG}",
    ),
    Flag(
        "kubeconfig",
        STRING,
        "",
        f"DEPRECATED: kubeconfig of the API server. {_WITHOUT_CONFIG}",
    ),
    Flag(
        "pod-max-in-unschedulable-pods-duration",
        DURATION,
        _duration(300),
        "DEPRECATED: how long a pod that does not fit stays parked if nothing wakes it. Counts "
        "with --config as well.",
    ),
    Flag(
        "profiling",
        BOOL,
        True,
        f"DEPRECATED: serve profiles at /debug/pprof/. {_WITHOUT_CONFIG}",
    ),
)

_LEADER_ELECTION: Final = (
    Flag(
        "leader-elect",
        BOOL,
        True,
        "Schedule only while this replica is the leader. For running several of them.",
    ),
    Flag(
        "leader-elect-lease-duration",
        DURATION,
        _duration(15),
        "How long a leader that stops renewing its lease stays leader: the longest time without "
        f"one. {_IN_ELECTION}",
    ),
    Flag(
        "leader-elect-renew-deadline",
        DURATION,
        _duration(10),
        "How long a leader tries to renew its lease before it gives up; shorter than the lease. "
        f"{_IN_ELECTION}",
    ),
    Flag(
        "leader-elect-resource-lock",
        STRING,
        "leases",
        "Kind of object that the leader holds: only leases are supported.",
    ),
    Flag("leader-elect-resource-name", STRING, "kube-scheduler", "Name of that object."),
    Flag("leader-elect-resource-namespace", STRING, "kube-system", "Namespace of that object."),
    Flag(
        "leader-elect-retry-period",
        DURATION,
        _duration(2),
        f"Pause between attempts to become, or to stay, leader. {_IN_ELECTION}",
    ),
)

_DEFAULT_GATES: Final = FeatureGates.of()
_VERSIONS: Final = f"kube={dotted(OLDEST_EMULATED_VERSION)}..{dotted(BINARY_VERSION)}"
_EMULATED: Final = f"{_VERSIONS}(default:{dotted(_DEFAULT_GATES.emulated_version)})"
_COMPATIBLE: Final = f"{_VERSIONS}(default:{dotted(_DEFAULT_GATES.min_compatibility_version)})"

_FEATURE_GATES: Final = (
    Flag(
        "emulated-version",
        STRINGS,
        (),
        "Behave as this version, major.minor or kube=major.minor: features have the stage that "
        f"they had then.\nOptions are: {_EMULATED}",
    ),
    Flag(
        "feature-gates",
        GATES,
        (),
        "Switch features on and off: Name=true or kube:Name=false, several with commas or in "
        "several flags.\nOptions are:\n" + "\n".join(_DEFAULT_GATES.help_lines()),
    ),
    Flag(
        "min-compatibility-version",
        STRINGS,
        (),
        "Oldest version of other components to get on with, not newer than --emulated-version.\n"
        f"Options are: {_COMPATIBLE}",
    ),
)

_METRICS: Final = (
    Flag(
        "allow-metric-labels",
        MAPPING,
        {},
        "Values that a label of a metric may have, all others become 'unexpected': "
        "metric,label=value1,value2. Quote a pair to give several: "
        '\'"m1,l1=a,b","m2,l2=c"\'.',
    ),
    Flag(
        "allow-metric-labels-manifest",
        STRING,
        "",
        "YAML file with the same, a pair a line:\n"
        '"metric1,label1": "value11,value12"\n'
        "Not together with --allow-metric-labels.",
    ),
    Flag(
        "disabled-metrics",
        STRINGS,
        (),
        "Full names of metrics not to offer, even if --show-hidden-metrics-for-version would.",
    ),
    Flag(
        "show-hidden-metrics-for-version",
        STRING,
        "",
        "Offer the metrics that were hidden since this version, which can only be the previous "
        "minor one: 1.35.",
    ),
)

_LOGS: Final = (
    Flag(
        "log-flush-frequency", DURATION, _duration(5), "How long a log line may wait in a buffer."
    ),
    Flag(
        "log-json-info-buffer-size",
        QUANTITY,
        "0",
        "[Alpha] Bytes of information that may wait before they are written to stdout, such as "
        f"512 or 64Ki, if --log-json-split-stream. 0 writes at once. {_ALPHA}",
    ),
    Flag(
        "log-json-split-stream",
        BOOL,
        False,
        f"[Alpha] In the format json, errors to stderr and information to stdout. {_ALPHA}",
    ),
    Flag(
        "log-text-info-buffer-size",
        QUANTITY,
        "0",
        "[Alpha] Bytes of information that may wait before they are written to stdout, such as "
        f"512 or 64Ki, if --log-text-split-stream. 0 writes at once. {_ALPHA}",
    ),
    Flag(
        "log-text-split-stream",
        BOOL,
        False,
        "[Alpha] In the format text, warnings and errors to stderr and information to stdout. "
        f"{_ALPHA}",
    ),
    Flag(
        "logging-format",
        STRING,
        "text",
        'Format of log lines: "text", or "json" (gated by LoggingBetaOptions).',
    ),
    Flag("v", LEVEL, 0, "How much to log: 0 is little, 10 is everything.", shorthand="v"),
    Flag(
        "vmodule",
        MODULES,
        (),
        "How much some files log, by patterns of their names without .py, or of names of modules "
        "with dots. Only in the format text.",
    ),
)

_OWN: Final = (
    Flag(
        "check-before-binding",
        STRING,
        "none",
        "What to check again directly before a pod is bound, if other schedulers use the same "
        'nodes: "none"; "cache", the node as the watches show it by then; or "live", together '
        "with the node's pods as the API server lists them.",
    ),
    Flag(
        "plugin",
        STRINGS,
        (),
        "Python file with plugins that profiles may enable, FILE or FILE:CLASS. May be given "
        "several times.",
    ),
    Flag(
        "queue-check-budget",
        FLOAT,
        0.01,
        "Share of a CPU that may be spent on checking that no pod waits although it could be "
        "scheduled; 0 never checks, 0.5 is the most.",
    ),
    Flag(
        "record",
        STRING,
        "",
        "File to record everything in that is seen and decided, for 'kubesched replay'. What was "
        "in it before is put aside as FILE.1.",
    ),
    Flag("record-files", INT, 4, "How many files of a recording are kept, the newest included."),
    Flag("record-max-size", QUANTITY, "1Gi", "How large they may be, all together."),
    Flag(
        "record-redact",
        BOOL,
        False,
        "Record without names, values of labels, images and annotations: pseudonyms take their "
        "place, under which all decisions are the same.",
    ),
    Flag(
        "seed",
        OPTIONAL_INT,
        None,
        "Settle ties between equally good nodes in the same way every time.",
    ),
    Flag(
        "tracing-config-file",
        STRING,
        "",
        "File with a TracingConfiguration, as kube-apiserver reads it: where OpenTelemetry spans "
        "are sent, and of how many attempts. Needs the extra kubesched[tracing].",
    ),
    Flag(
        "web-ui",
        BOOL,
        False,
        "Serve a web page at /ui/ of --secure-port, to users authorized to get (for what-if, "
        "post) the path /ui/*: nodes, the queue, why pods wait, what would help.",
    ),
)

_GLOBAL: Final = (
    Flag("help", BOOL, False, "Show this text and exit.", shorthand="h"),
    Flag(
        "version",
        VERSION,
        VersionFlag(),
        "Print the version and exit, with all its parts if it is raw; --version=vX.Y.Z-suffix "
        "sets the version that is reported.",
    ),
)

FLAGS: Final = FlagSet(
    (
        Group("misc", _MISC),
        Group("secure serving", _SECURE_SERVING),
        Group("authentication", _AUTHENTICATION),
        Group("authorization", _AUTHORIZATION),
        Group("deprecated", _DEPRECATED),
        Group("leader election", _LEADER_ELECTION),
        Group("feature gate", _FEATURE_GATES),
        Group("metrics", _METRICS),
        Group("logs", _LOGS),
        Group("kubesched", _OWN),
        Group("global", _GLOBAL),
    )
)
