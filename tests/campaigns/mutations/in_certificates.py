"""Mutations of etcd's certificates, and of who reads the operator's metrics."""

from __future__ import annotations

from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import MANIFESTS, o
from tests.campaigns.mutations.mutation import mutation

PLAN = "tests/tiers/unit/etcd_certificates/test_plan.py"
METRICS = "tests/tiers/unit/adapters/test_metrics_access.py"
FILE = "etcd_certificates/plan"

TLS = "TlsTest.anAuthorityThatIsReplacedIsTrustedByClientsThatRun"

CERTIFICATES = (
    mutation(
        "a-jvm-knows-the-authority-of-its-start",
        "F274",
        "when the gateway's authority is replaced all writers end at their next connection",
        j("TrustedAuthorities", "                trusting = trusting(found);\n"),
        t(TLS),
    ),
    mutation(
        "an-authority-that-was-removed-is-trusted",
        "F274",
        "a JVM goes on to trust an authority whose key is in other hands",
        j("TrustedAuthorities", "!Arrays.equals(found, content)", "found.length > content.length"),
        t(TLS),
    ),
    mutation(
        "a-file-that-is-being-replaced-ends-all-trust",
        "F274 availability",
        "a JVM that connects while the kubelet replaces the file ends",
        j(
            "TrustedAuthorities",
            "            // It is being replaced, or gone with the pod's volume.\n",
            "            throw new IllegalStateException(e);\n",
        ),
        t(TLS),
    ),
    mutation(
        "pods-that-run-are-not-told-of-an-authority",
        "F274",
        "the next authority of the gateway reaches a namespace only with a new pod",
        o("plan/agent/agents", "        actions.extend(_copy_authority(view))\n", ""),
        "tests/tiers/unit/plan/agent/test_agents.py::test_pods_that_run_are_told_of_another_authority_of_the_gateway",
    ),
    mutation(
        "successor-signs-before-etcd-knows-it",
        "F140",
        "the next authority signs although no member of etcd was seen to accept it",
        o(FILE, "        if not members_accept_next:\n", "        if settings.members < 0:\n"),
        f"{PLAN}::test_an_authority_is_replaced_without_a_gap",
    ),
    mutation(
        "successor-signs-before-clients-know-it",
        "F140",
        "the next authority signs before clients had time to read the bundle",
        o(FILE, "begin + timedelta(seconds=settings.trust_seconds)", "begin"),
        f"{PLAN}::test_an_authority_is_replaced_without_a_gap",
    ),
    mutation(
        "old-authority-is-forgotten",
        "F140",
        "the old authority leaves the bundle when its successor signs: its certificates are in use",
        o(FILE, "authority.bundle([ca.data[CERTIFICATE], ca.data", "authority.bundle([ca.data"),
        f"{PLAN}::test_an_authority_is_replaced_without_a_gap",
    ),
    mutation(
        "authority-before-the-old-one-is-forgotten",
        "F140",
        "two replacements close together: what the first authority signed is not trusted any more",
        o(FILE, 'ca.data[CERTIFICATE], ca.data.get(PREVIOUS, b"")]', "ca.data[CERTIFICATE]]"),
        f"{PLAN}::test_two_replacements_close_together_keep_all_that_is_in_use",
    ),
    mutation(
        "damaged-authority-is-not-noticed",
        "F141",
        "an authority whose key is another one's counts as whole",
        o(FILE, "    authority.check(present)\n"),
        f"{PLAN}::test_a_damaged_authority_is_not_replaced",
    ),
    mutation(
        "ended-authority-waits",
        "F141",
        "an authority that has ended goes on signing until its successor is trusted by everybody",
        o(FILE, "    if left == 0:\n", "    if left < 0:\n"),
        f"{PLAN}::test_an_authority_that_has_ended_is_followed_at_once",
    ),
    mutation(
        "certificates-are-not-renewed",
        "F140",
        "a certificate is used until it has ended",
        o("adapters/authority", "    return (end - now) / (end - begin)\n", "    return 1.0\n"),
        f"{PLAN}::test_a_leaf_is_renewed_when_a_third_of_its_life_is_left",
    ),
    mutation(
        "any-token-opens-the-metrics",
        "F142",
        "a request with any bearer token reads the metrics",
        o("observability", "same = hmac.compare_digest(given.strip().encode(), token.encode())", "same = bool(given)"),
        f"{METRICS}::test_without_the_token_nothing_is_told",
    ),
    mutation(
        "no-token-opens-the-metrics",
        "F142",
        "a token file that cannot be read opens the metrics to everybody",
        o("observability", '        return "503 Service Unavailable"\n', '        return ""\n'),
        f"{METRICS}::test_a_token_that_cannot_be_read_opens_nothing",
    ),
    mutation(
        "scratch-space-without-a-limit",
        "F143",
        "what a writer spills fills its node's disk",
        o("manifests/pods", '"emptyDir": {"sizeLimit": tmp_size_limit}', '"emptyDir": {}'),
        f"{MANIFESTS}::test_the_labels_that_network_policies_select_are_on_every_pod",
    ),
)
