"""Mutations of the mode Credentials: valid proofs, their credentials, and their duration."""

from __future__ import annotations

from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import mutation

REVOCATION = "tests/tiers/unit/plan/fencing/test_revocation.py"
KEPT = "tests/tiers/unit/control/test_attempt_credentials.py"
OWN = "tests/tiers/unit/manifests/test_own_credentials.py"
BROKER = "tests/tiers/unit/adapters/test_credentials_broker.py"

CREDENTIALS = (
    mutation(
        "the-brokers-word-is-a-proof",
        "I1 I11 F28",
        "credentials count as revoked although the store may still accept them",
        o(
            "model/store_access",
            "return self.revoked and self.refusals >= FEWEST_REFUSALS and self.refused_seconds >= cache_seconds",
            "return self.revoked",
        ),
        f"{REVOCATION}::test_less_is_no_proof_and_the_next_question_is_asked",
    ),
    mutation(
        "one-server-has-refused",
        "I1 I11 F231",
        "the memory of the store's other servers is not waited for",
        o("model/store_access", " and self.refused_seconds >= cache_seconds", ""),
        f"{REVOCATION}::test_less_is_no_proof_and_the_next_question_is_asked",
    ),
    mutation(
        "refusals-with-an-answer-between",
        "I1 I11 F231",
        "refusals are counted although a request between them was accepted",
        o(
            "control/attempt_credentials",
            "        if answer.verdict is not Verdict.REFUSED:\n            self.refusals = 0\n",
            "        if answer.verdict is not Verdict.REFUSED:\n",
        ),
        f"{KEPT}::test_any_other_answer_begins_the_count_anew",
    ),
    mutation(
        "a-wrong-signature-is-a-refusal",
        "I1 I11 F28",
        "the store refuses the operator's request for what it is, and that is taken for the revocation",
        o(
            "adapters/store_request",
            '"InvalidAccessKeyId", "Acc',
            '"SignatureDoesNotMatch", "InvalidAccessKeyId", "Acc',
        ),
        f"{BROKER}::test_only_a_refusal_of_the_identity_counts",
    ),
    mutation(
        "any-403-is-a-refusal",
        "I1 I11 F28",
        "the page of a proxy is taken for the store's refusal",
        o("adapters/store_request", "if status in (400, 401, 403) and code in _REFUSALS:", "if status == 403:"),
        f"{BROKER}::test_only_a_refusal_of_the_identity_counts",
    ),
    mutation(
        "other-credentials-are-refused",
        "I1 I11 F28",
        "the store is asked with what stands in the Secret now, whoever has put it there",
        (
            o("control/attempt_credentials", 'if secret is None or not secret.get("immutable"):', "if secret is None:"),
            o("control/attempt_credentials", "if not mine or pod_uid not in", "if False and pod_uid not in"),
        ),
        f"{KEPT}::test_no_other_credentials_are_asked_with",
    ),
    mutation(
        "credentials-speak-for-every-pod",
        "I1 I11 F28",
        "a pod with other credentials counts as cut off",
        o(
            "plan/fencing/revocation",
            "if not _mounts(pod, own.name) or not found.seen(cache):",
            "if not found.seen(cache):",
        ),
        f"{REVOCATION}::test_executors_are_covered_when_they_have_the_drivers_credentials",
    ),
    mutation(
        "credentials-speak-for-a-pod-without-evidence",
        "I1 F26 F28",
        "a pod that was seen without our finalizer counts as cut off",
        o(
            "plan/fencing/revocation",
            "if own is None or pod is None or not subject.evidence or EVIDENCE_FINALIZER not in pod.finalizers:",
            "if own is None or pod is None:",
        ),
        f"{REVOCATION}::test_credentials_prove_nothing_where_the_pod_does_not_show_them",
    ),
    mutation(
        "credentials-in-every-mode",
        "I1 F8",
        "credentials count in another mode than the gate's",
        o(
            "plan/fencing/revocation",
            "usable = view.mode == FencingMode.CREDENTIALS and view.config",
            "usable = view.config",
        ),
        f"{REVOCATION}::test_credentials_prove_nothing_of_a_pod_that_has_others",
    ),
    mutation(
        "the-short-drain-after-a-revocation",
        "I1 I3 F230",
        "a request that a paused process has begun is completed after its lock was deleted",
        o(
            "plan/fencing/revocation",
            "return max(view.drain_seconds, float(view.config.credentials_broker.request_seconds) if alive else 0.0)",
            "return view.drain_seconds",
        ),
        f"{REVOCATION}::test_the_drain_is_as_long_as_the_store_goes_on_with_a_request",
    ),
    mutation(
        "credentials-that-never-worked",
        "I1 I11 F28",
        "an attempt starts with credentials that the store refuses from the beginning",
        o(
            "control/attempt_credentials",
            "        if answer.verdict is not Verdict.ACCEPTED:\n            seen.problem",
            "        if answer.verdict is Verdict.UNKNOWN:\n            seen.problem",
        ),
        f"{KEPT}::test_none_is_made_of_credentials_that_it_does_not",
    ),
    mutation(
        "credentials-for-a-fenced-attempt",
        "I1 F232",
        "an attempt whose credentials are being revoked is given others",
        o(
            "plan/writers/attempts",
            "if not attempt.admitted or any(i.fenced or i.record is not None for i in attempt.incs):",
            "if not attempt.admitted:",
        ),
        f"{REVOCATION}::test_a_fenced_attempt_gets_no_credentials_any_more",
    ),
    mutation(
        "credentials-outlive-their-attempt",
        "F232",
        "an attempt ends, and its credentials stay valid",
        o("plan/fencing/revocation", "if own and view.config.credentials_broker.given and not", "if False and not"),
        f"{REVOCATION}::test_evidence_is_dropped_after_the_revocation",
    ),
    mutation(
        "executors-may-have-the-tables-credentials",
        "I1 F28",
        "executors of a driver whose credentials can be revoked may mount those that cannot",
        o("manifests/configmaps", "storage = [own] if own else [ref.name", "storage = [ref.name"),
        f"{OWN}::test_driver_and_executors_have_their_own_and_the_agent_the_tables",
    ),
    mutation(
        "a-driver-has-the-tables-credentials",
        "I1 F28",
        "a driver whose credentials can be revoked mounts those that cannot",
        o("manifests/pods", "            if own:\n", "            if not own:\n"),
        f"{OWN}::test_driver_and_executors_have_their_own_and_the_agent_the_tables",
    ),
    mutation(
        "another-store-is-asked",
        "I1 I11 F28",
        "the store that refuses is not the one that the table's writers use",
        o("api/revocable", 'if said.rstrip("/") != store_endpoint.rstrip("/"):', "if not said:"),
        f"{OWN}::test_a_table_whose_writers_would_have_another_access",
    ),
)
