"""Rules of the gateway before etcd: whose token it is, and which keys are its own
(docs/design/identities.md).

Its harness builds the program from the checkout that is tested.
"""

from __future__ import annotations

from tests.campaigns.mutations.mutation import Edit, mutation

_TESTS = "tests/tiers/component/operator/test_identities.py"


def g(file: str, old: str, new: str = "") -> Edit:
    return Edit(f"gateway/{file}.go", old, new)


IDENTITIES = (
    mutation(
        "any-table-is-ones-own",
        "F110",
        "a pod that is admitted to some table writes the keys of any",
        (
            g("rules", 'admission := "admit/" + s.attempt()', 'admission := "gate"'),
            g("rules", " && admit.Attempt == s.attempt() &&", " && true &&"),
            g("rules", "(admit.Role == roleWriter || admit.Role == roleAgent) {", "true {"),
            g("rules", "			made.role = admit.Role\n", "			made.role = roleAgent\n"),
        ),
        f"{_TESTS}::test_no_key_of_another_table",
    ),
    mutation(
        "writers-may-settle",
        "F110 I7",
        "a driver puts the settle record of a living writer",
        g("rules", "	case !r.contract.writers[kind][have.role]:", "	case !r.contract.writers[kind][roleAgent]:"),
        f"{_TESTS}::test_a_role_puts_the_keys_that_the_contract_gives_it",
    ),
    mutation(
        "a-registration-names-any-pod",
        "F111",
        "a driver registers as the pod of somebody else, which the operator then deletes",
        g("rules", "value.Role != have.role || !value.of(s) {", "value.Role != have.role {"),
        f"{_TESTS}::test_a_registration_names_the_pod_that_made_it",
    ),
    mutation(
        "a-heartbeat-is-anybodys",
        "F110",
        "a pod keeps the incarnation of another one alive",
        g("rules", "	if owner != s.uid {\n", '	if owner == "" {\n'),
        f"{_TESTS}::test_whose_heartbeat_whose_place_whose_lock_whose_instant",
    ),
    mutation(
        "leases-are-everybodys",
        "F110",
        "a pod revokes the lease of another one",
        g("rules", "return id>>32 == leaseSpace(s)>>32 }", "return id != 0 }"),
        f"{_TESTS}::test_leases_are_the_pods_own",
    ),
    mutation(
        "only-the-branch-that-runs-is-checked",
        "F110",
        "what stands in the branch for the other outcome is let through",
        g("rules", "return append(slices.Clone(txn.Success), txn.Failure...)", "return slices.Clone(txn.Success)"),
        f"{_TESTS}::test_no_key_of_another_table",
    ),
    mutation(
        "tokens-for-others-are-accepted",
        "F110",
        "a token for the API server, which each pod may have, opens etcd",
        g("token", "AnyAudience: jwt.Audience{v.audience}, ", ""),
        f"{_TESTS}::test_without_a_good_token_nothing",
    ),
    mutation(
        "a-range-may-leave-the-table",
        "F110",
        "a range that begins in the own table and ends behind it is read",
        g("contract", "bytes.Compare(end, prefixEnd(prefix)) <= 0", "true"),
        f"{_TESTS}::test_a_range_is_of_one_table",
    ),
)
