"""The forty acceptance cases, by number: the fault, what must come of it, and the tests that are
about it.

A test that is named here exists (tests/tiers/unit/faults checks it); its tier says what it shows:
`unit` tests play everything but the planner, `component` tests the kubelet and the JVM, `hudi` and
`faults` the operator, `e2e` nothing. If no tier with real parts is named, the case does not count
as passed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.evidence import catalog

UNIT = "tests/tiers/unit"
SIMULATED = f"{UNIT}/plan/test_simulated.py"
COMPONENT = "tests/tiers/component/operator"
CRDS = "tests/tiers/component/crds"
HUDI = "tests/tiers/hudi"
E2E = "tests/tiers/e2e"
JAVA = "spark-images/etcd-lock/src/test/java/io/hudioperator"


@dataclass(frozen=True)
class Case:
    """One acceptance case.

    `tests`: `file::test` or `faults::scenario`; `open`: what no test shows yet.
    """

    number: int
    fault: str
    expected: str
    about: str
    """Invariants that it is about (docs/design/protocol.md), or what else it is about."""
    tests: tuple[str, ...] = ()
    open: str = ""

    @property
    def tiers(self) -> list[str]:
        """Tiers of its tests, those with the most real parts last.

        `+`: of its tests there `make test` runs none.
        """
        order = {"unit": 0, "java": 1, "component": 2, "hudi": 3, "faults": 4, "e2e": 5}
        found: dict[str, set[str]] = {}
        for test in self.tests:
            found.setdefault(_tier(test), set()).update(one.run for one in catalog.named(test))
        return [tier + " +" * (found[tier] <= {catalog.ALL}) for tier in sorted(found, key=lambda tier: order[tier])]


def _tier(test: str) -> str:
    if test.startswith("faults::"):
        return "faults"
    if test.startswith(JAVA):
        return "java"
    return test.split("/")[2]


CASES = (
    Case(
        1,
        "SIGKILL of the driver during a data write",
        "fenced within 10 s, settled within 120 s; rolled back, or kept where it had been completed",
        "I4, I6",
        (
            f"{E2E}/test_faults.py::test_each_kill_is_settled",
            f"{HUDI}/test_writer.py::test_files_exactly_once_over_sigkill",
            f"{SIMULATED}::test_killed_without_the_lock",
        ),
        (
            "that other writers go on: counted by `make kills`, asserted of a driver that is frozen or cut off "
            "without the lock (4, 13), not of a killed one"
        ),
    ),
    Case(
        2,
        "SIGKILL after acquire, before the completed file",
        "others wait for proof and drain, then rollback",
        "I1, I6",
        (
            f"{E2E}/test_pod_faults.py::test_killed_at_named_points",
            "faults::listing-fails",
            f"{SIMULATED}::test_killed_while_holding_the_lock",
        ),
    ),
    Case(
        3,
        "SIGKILL after the completed file, before release",
        "the look finds it completed: kept",
        "I3, I8",
        (
            f"{E2E}/test_pod_faults.py::test_killed_at_named_points",
            "faults::inside-the-drain",
            f"{SIMULATED}::test_killed_after_the_put_keeps_the_commit",
        ),
    ),
    Case(
        4,
        "SIGSTOP before acquire until the lease is over, then resume; the same until it is fenced",
        (
            "the first pause has no consequences; after the second the JVM ends and its instant is rolled back; a "
            "fenced session never acquires; others commit"
        ),
        "I2",
        (
            f"{E2E}/test_pod_faults.py::test_frozen_before_acquire",
            f"{JAVA}/protocol/AcquireTest.java::fencedNeverAcquires",
            f"{JAVA}/protocol/RegistrationTest.java::theFenceHaltsTheProcess",
        ),
    ),
    Case(
        5,
        "SIGSTOP inside the critical section, before the completed file; another writer wants to commit",
        (
            "it waits for the proof; of two overlapping commits one stands, the other one is rolled back, or refused "
            "and repeated"
        ),
        "I1, I9",
        (
            "faults::paused-writer",
            "faults::publication-on-the-wire",
            f"{E2E}/test_pod_faults.py::test_frozen_in_the_critical_section",
            f"{E2E}/test_pod_faults.py::test_frozen_while_it_publishes",
            f"{E2E}/test_lease_only.py::test_default_mode_makes_the_second_writer_wait_and_conflict",
            f"{SIMULATED}::test_a_paused_holder_of_the_lock_cannot_outlive_it",
        ),
    ),
    Case(
        6,
        "as 5, the kubelet cannot confirm (node lost)",
        "no takeover, AwaitingProofOfDeath; goes on after attestation",
        "I1, I11",
        (
            f"{E2E}/test_node_faults.py::test_node_lost_and_back",
            f"{E2E}/test_node_faults.py::test_node_lost_and_a_person_attests",
            f"{SIMULATED}::test_node_lost_then_rebooted",
            f"{SIMULATED}::test_node_proofs_count_only_as_configured",
            f"{CRDS}/test_policies.py::test_an_attestation_in_ones_own_name",
        ),
    ),
    Case(
        7,
        "a person force-deletes the pod of a living driver, or takes its finalizer away, too",
        "no proof by itself: the finalizer keeps the pod until its kubelet has proven the end; without it a person "
        "must attest",
        "I1, I11",
        (
            f"{E2E}/test_faults.py::test_a_force_deleted_pod_is_proven_by_its_kubelet",
            f"{COMPONENT}/test_attempts.py::test_a_force_deleted_driver_is_not_proven_dead",
            f"{SIMULATED}::test_force_deleted_pod_is_no_proof",
        ),
        "that anything waits while the process lives, on pods: the test there looks at the proof alone",
    ),
    Case(
        8,
        "the completed file's PUT is held, the driver killed, the PUT arrives inside the drain",
        "the look sees completion: kept",
        "I3, I8",
        (
            "faults::inside-the-drain",
            "faults::client-times-out",
            "faults::other-file-times-out",
            "faults::archive-version-times-out",
            f"{JAVA}/session/ReleaseTest.java::aRequestThatLandsDuringTheDrainIsACompletedInstant",
        ),
        "nobody is killed in `client-times-out`, `other-file-times-out` and `archive-version-times-out`: there the "
        "client gives the request up; a late `hoodie.properties` on a real store",
    ),
    Case(
        9,
        "the PUT arrives after the drain (assumption broken)",
        "the audit reports it (`late`)",
        "I3",
        (
            "faults::after-the-drain",
            "faults::after-the-drain-same-group",
            f"{HUDI}/test_audit.py::test_completed_after_it_was_rolled_back",
            f"{UNIT}/runtime/audit/test_audit.py::test_each_damage_is_found_by_its_check",
        ),
    ),
    Case(
        10,
        "mode Credentials: revoke, then a zombie writes",
        "the store refuses its credentials, and a request that had begun ends within the drain; its instant is rolled "
        "back, and a repetition commits",
        "I3",
        (
            f"{E2E}/test_credentials_fencing.py::test_a_lost_node_needs_no_person",
            f"{COMPONENT}/test_credentials_fencing.py::test_a_writer_on_a_lost_node_is_settled_while_it_stands_still",
            f"{COMPONENT}/test_credentials_store.py::test_revoked_is_for_ever_whatever_comes_late",
            f"{COMPONENT}/test_credentials_store.py::test_a_server_remembers_users_that_another_one_has_forgotten",
            f"{COMPONENT}/test_credentials_store.py::"
            "test_a_request_that_has_begun_outlives_the_revocation_without_a_limit",
            f"{UNIT}/plan/fencing/test_revocation.py::test_refused_for_as_long_as_the_cache_is_a_proof",
            f"{UNIT}/plan/fencing/test_revocation.py::test_the_drain_is_as_long_as_the_store_goes_on_with_a_request",
        ),
        "another store than versitygw; a repetition that commits, on pods (no retry there; the component test has it)",
    ),
    Case(
        11,
        "an executor outlives its driver and finishes a file",
        "settling waits for the proof of its end; a file that lands in the drain, or lies there unnamed, is deleted",
        "I5",
        (
            f"{E2E}/test_pod_executors.py::test_an_executor_that_outlives_its_driver",
            f"{HUDI}/test_agent.py::test_rolls_back_exactly_the_dead_writers_instant",
            f"{SIMULATED}::test_force_deleted_executor_is_no_proof",
        ),
    ),
    Case(
        12,
        "loss of an executor only",
        "no attempt is lost and the job succeeds; then it is fenced and settled, its instant stays Completed (F36)",
        "availability",
        (
            f"{E2E}/test_pod_executors.py::test_loss_of_an_executor_is_no_fault_of_the_writer",
            f"{UNIT}/plan/test_rules.py::test_the_loss_of_an_executor_is_not_the_end_of_its_driver",
        ),
        "on pods, that the executor's end is proven: its pod may also be gone when the attempt is settled",
    ),
    Case(
        13,
        "driver cut from etcd for 5 s / for longer than lease and suspicion",
        "survives / is fenced, ended by the operator and settled; one that nobody fences halts by itself",
        "I2",
        (
            f"{E2E}/test_pod_faults.py::test_cut_from_etcd",
            f"{E2E}/test_pod_faults.py::test_cut_from_everything_in_the_critical_section",
            f"{E2E}/test_pod_faults.py::test_cut_from_storage_while_it_publishes",
            f"{JAVA}/protocol/RegistrationTest.java::silenceHaltsTheProcess",
            f"{JAVA}/protocol/RegistrationTest.java::aLostLeaseIsReplacedAndTheSessionGoesOn",
        ),
        "60 s on a real pod: the operator has ended it before",
    ),
    Case(
        14,
        "etcd's leader is killed while writers run",
        "nobody is without a heartbeat for so long that it would be fenced; the work goes on",
        "availability",
        (
            f"{JAVA}/session/QuorumTest.java::theLeaderIsCutOffFromItsPeersAndStillHasClients",
            f"{JAVA}/session/QuorumTest.java::theLeaderIsKilled",
            f"{JAVA}/session/QuorumTest.java::theLeaderIsFrozen",
            f"{JAVA}/session/QuorumTest.java::theConnectionsToAMemberAreHalfOpen",
            f"{JAVA}/session/FailoverTest.java::aSessionSurvivesTheLossOfTheMemberItIsConnectedTo",
        ),
        "three members on a real cluster",
    ),
    Case(
        15,
        "etcd's quorum is lost (6 s; 60 s with `make test-all`, 300 s with `make faults`), or etcd is frozen",
        "nothing is acquired, committed or fenced, and no pod deleted; recovers by itself",
        "I1, I11",
        (
            f"{COMPONENT}/test_crashes.py::test_without_etcd_nothing_is_decided_and_the_table_says_so",
            f"{JAVA}/session/QuorumTest.java::withoutQuorumNothingIsDoneAndItGoesOnByItself",
            "faults::quorum-lost",
            f"{UNIT}/plan/test_table_plan.py::test_unknown_is_not_empty",
        ),
        "an agent that looks at the timeline meanwhile; the noted run of "
        "`withoutQuorumNothingIsDoneAndItGoesOnByItself` has 6 s, in which no JVM halts",
    ),
    Case(
        16,
        "the response of acquire is lost",
        "the provider finds its own token",
        "I1",
        (
            f"{JAVA}/protocol/AcquireTest.java::aLostAnswerOfAcquireEndsWithTheLock",
            f"{JAVA}/protocol/AcquireTest.java::aLostAnswerOnTheNetworkEndsWithTheLock",
        ),
    ),
    Case(
        17,
        "the response of release is lost",
        "repeated until definite; frees nobody else's lock",
        "I1",
        (
            f"{JAVA}/protocol/AcquireTest.java::aLostAnswerOfReleaseIsRepeated",
            f"{JAVA}/protocol/AcquireTest.java::aLateReleaseDoesNotTouchTheNextOwner",
        ),
    ),
    Case(
        18,
        "the API server is frozen (SIGSTOP) for a minute while a writer dies",
        "nothing is proven and the lock stays; settling catches up",
        "I11",
        (
            f"{E2E}/test_node_faults.py::test_api_server_down_while_a_writer_dies",
            f"{UNIT}/adapters/test_lists_of_pods.py::test_a_list_that_cannot_be_read_whole_is_none",
            f"{UNIT}/adapters/test_lists_of_pods.py::test_a_server_that_is_gone_lists_nothing",
        ),
    ),
    Case(
        19,
        "the operator is killed: at 4 writes and after 7 steps of settling with a real API server and etcd (3 more "
        "writes lose their answer, come late or conflict), before and after every action in the simulation",
        "same end state",
        "I6",
        (
            f"{COMPONENT}/test_enumerated_crashes.py::test_whatever_becomes_of_a_write_the_end_is_the_same",
            f"{COMPONENT}/test_crashes.py::test_an_operator_killed_after_each_step_of_settling_changes_nothing_but_time",
            f"{SIMULATED}::test_operator_dies_in_each_phase",
            f"{SIMULATED}::test_operator_dies_before_and_after_every_action_of_settling",
            f"{SIMULATED}::test_operator_dies_between_actions_all_the_time",
        ),
        "the cases that `make crashes` has not run ([crashes.md](crashes.md))",
    ),
    Case(
        20,
        "frozen watch, stale list, dropped events",
        "converges to the same end state; nothing is deleted by force or without its uid",
        "I11",
        (
            f"{COMPONENT}/test_enumerated_crashes.py::test_whatever_is_seen_late_or_never_the_end_is_the_same",
            f"{COMPONENT}/test_etcd_adapter.py::test_a_watch_goes_on_where_it_was_over_a_restart_and_looks_at_everything_after_a_compaction",
        ),
    ),
    Case(
        21,
        "two operators at once",
        "no double effect",
        "I6, I11",
        (
            f"{COMPONENT}/test_enumerated_crashes.py::test_whatever_is_seen_late_or_never_the_end_is_the_same",
            f"{UNIT}/control/test_observe.py::test_an_attempt_that_began_while_the_table_was_read_is_not_taken_for_nobodys",
            f"{COMPONENT}/test_crashes.py::test_a_frozen_a_killed_and_a_stopped_leader_are_followed_in_time",
            f"{UNIT}/control/test_loop.py::test_a_former_leader_stops_before_its_next_action",
        ),
    ),
    Case(
        22,
        "a driver has lost its heartbeat and its process lives",
        "it is fenced and deleted with grace; no second pod beside it, and the lock stays until its end is proven",
        "I9",
        (
            f"{COMPONENT}/test_attempts.py::test_a_lost_heartbeat_is_enough_to_fence_and_delete_but_not_to_unlock",
            f"{COMPONENT}/test_attempts.py::test_a_killed_driver_is_fenced_proven_drained_swept_and_followed",
            f"{UNIT}/plan/test_rules.py::test_an_attempt_that_may_still_register_is_waited_for",
        ),
    ),
    Case(
        23,
        "the container of a driver ends, or its JVM alone",
        (
            "no container is started again in its pod; another pod with an incarnation of its own follows, the old "
            "one's instants are settled"
        ),
        "I2, I7",
        (
            f"{E2E}/test_pod_faults.py::test_killed_at_named_points",
            f"{UNIT}/manifests/test_manifests.py::test_every_pod_is_evidence_never_restarts_and_has_its_own_network",
        ),
    ),
    Case(
        24,
        "eviction with 30 s grace while holding the lock",
        "commit or clean release",
        "I1, I8",
        (
            f"{E2E}/test_pod_ends.py::test_evicted_while_it_holds_the_lock",
            f"{HUDI}/test_writer.py::test_sigterm_gives_up_what_does_not_fit",
            f"{JAVA}/protocol/RegistrationTest.java::cleanExitRemovesTheRegistration",
        ),
    ),
    Case(
        25,
        "a writer's clock is ahead by less or more than 5 s, or behind the table's",
        "bound enforced, the lock unaffected",
        "I10",
        (
            f"{E2E}/test_pod_clock.py::test_a_clock_that_is_ahead_by_less_than_the_bound",
            f"{E2E}/test_pod_clock.py::test_a_clock_that_is_ahead_by_more_than_the_bound",
            f"{E2E}/test_pod_clock.py::test_a_clock_that_is_behind_by_less_than_the_bound",
            f"{E2E}/test_pod_clock.py::test_a_clock_that_is_behind_by_more_than_the_bound",
            f"{UNIT}/plan/test_table_plan.py::test_a_fast_clock_is_fenced",
            f"{COMPONENT}/test_etcd_faults.py::test_a_host_whose_clock_is_ahead_moves_no_clock",
            f"{JAVA}/timeline/ClockAheadTest.java::anInstantIsNotBegun",
            f"{JAVA}/protocol/AcquireTest.java::aClockALittleAheadIsWaitedFor",
            f"{JAVA}/protocol/AcquireTest.java::theClockOfTheTableMustNotBeFarAhead",
        ),
    ),
    Case(
        26,
        "the rollback fails again and again",
        "failures that the agent reports are told in the condition; repeated with growing pauses, one failure does not "
        "stop the others",
        "I6",
        (
            f"{SIMULATED}::test_a_rollback_that_fails_again_and_again_is_told_until_it_succeeds",
            f"{UNIT}/runtime/settle/test_settler.py::test_a_failure_is_counted_and_does_not_stop_the_others",
            f"{UNIT}/runtime/settle/test_settling.py::test_backoff_grows_to_a_minute",
            f"{HUDI}/test_agent.py::test_next_agent_finishes_a_rollback",
        ),
        "many failures of a real store; an agent that runs out of memory in a rollback",
    ),
    Case(
        27,
        "listings fail during the look",
        "nothing deleted; retried",
        "I4, I11",
        (
            "faults::listing-fails",
            "faults::store-is-busy",
            f"{JAVA}/session/ReleaseTest.java::aListingThatFailsDecidesNothing",
        ),
    ),
    Case(
        28,
        "two writers, one file group",
        (
            "the later commit is refused, told with whom it met, rolled back and, with retries left, repeated under a "
            "new instant"
        ),
        "I9",
        (
            f"{HUDI}/test_writer.py::test_two_writers_rewrite_one_file_group",
            f"{JAVA}/ConflictTest.java::whoConflicts",
        ),
    ),
    Case(
        29,
        "two writers, disjoint partitions, 200 commits each",
        "all commit, nobody conflicts, every row is there",
        "I8, I9",
        (f"{HUDI}/test_long_run.py::test_two_hundred_commits_each", f"{JAVA}/ConflictTest.java::whoConflicts"),
        "their history is not checked for anomalies, only the rows in the end",
    ),
    Case(
        30,
        "32 writers on one lock",
        "all are served; while one waits, nobody else is served more than three times",
        "I1; fairness",
        (
            f"{JAVA}/protocol/FairnessTest.java::thirtyTwoWritersAreServedInTurn",
            f"{JAVA}/protocol/QueueTest.java::manyContendersExcludeEachOther",
            f"{JAVA}/protocol/QueueTest.java::firstComeFirstServed",
        ),
    ),
    Case(
        31,
        "a foreign writer commits to the table",
        "reported; never rolled back",
        "I7",
        (
            f"{HUDI}/test_foreign.py::test_the_first_instant_of_a_foreign_writer_is_shown",
            f"{HUDI}/test_foreign.py::test_a_foreign_writer_rolls_back_what_a_living_one_has_pending",
            f"{HUDI}/test_foreign.py::test_several_foreign_writers_with_a_lock_of_their_own",
            f"{HUDI}/test_agent.py::test_rolls_back_exactly_the_dead_writers_instant",
            f"{UNIT}/runtime/settle/test_settler.py::test_an_unrecorded_instant_is_foreign",
        ),
        "a foreign commit at the moment of one of ours",
    ),
    Case(
        32,
        "a writer sets options of the operator",
        (
            "rejected at admission, refused in the driver; `EAGER` alone Hudi turns into LAZY, an ordinary commit; a "
            "living writer's instant stays"
        ),
        "I4, I7, I9",
        (
            f"{CRDS}/test_writers.py::test_options_of_the_operator_are_refused_in_every_spelling",
            f"{HUDI}/test_writer.py::test_hostile_application_harms_nobody",
            f"{JAVA}/HudiIntegrationTest.java::theProviderRefusesOptionsThatWouldDestroy",
        ),
    ),
    Case(
        33,
        "etcd restored from an older snapshot",
        "revision went back: frozen until a person has looked",
        "I10, I11",
        (
            f"{COMPONENT}/test_operator_through_outages.py::test_an_etcd_restored_from_a_backup_freezes_the_table_until_a_person_has_looked",
            f"{COMPONENT}/test_etcd_faults.py::test_nobody_writes_to_an_etcd_that_was_set_back_until_a_person_has_looked",
            f"{JAVA}/session/EtcdFaultsTest.java::anEtcdThatForgotIsNotWrittenToAndItsWritersEnd",
            f"{UNIT}/plan/gate/test_gate.py::test_a_revision_that_went_back_freezes_until_a_person_has_looked",
        ),
    ),
    Case(
        34,
        "one writer attempts a table upgrade",
        "refused",
        "I8",
        (
            f"{HUDI}/test_statements.py::test_no_statement_loses_a_row",
            f"{UNIT}/api/test_options.py::test_owned_hudi_options",
        ),
        "a writer with a newer Hudi in its image: refused by its version before it registers",
    ),
    Case(
        35,
        "two HudiTables whose paths differ in spelling only",
        "the second is refused; one lock",
        "I1",
        (
            f"{E2E}/test_use.py::test_second_table_on_one_path_is_stalled",
            f"{CRDS}/test_tables.py::test_a_refusal_names_field_value_and_rule",
            f"{UNIT}/plan/test_table_plan.py::test_paths",
            f"{UNIT}/contract/test_naming.py::test_canonical_path",
            f"{UNIT}/contract/test_naming.py::test_places_that_overlap",
            f"{UNIT}/plan/test_nesting.py::test_the_later_one_is_refused",
        ),
    ),
    Case(
        36,
        "base path file:///etc, a foreign bucket, an address of the metadata service",
        "rejected; no key, no pod, so nobody opens it",
        "isolation",
        (
            f"{CRDS}/test_tables.py::test_a_refusal_names_field_value_and_rule",
            f"{UNIT}/api/test_spec.py::test_errors_name_the_field",
            f"{UNIT}/plan/test_table_plan.py::test_paths",
            f"{UNIT}/plan/test_table_plan.py::test_a_path_that_is_not_allowed_gets_nothing",
            f"{UNIT}/plan/writers/test_source_tables.py::test_files_are_held_to_the_rules_for_tables",
            f"{UNIT}/api/test_hostile_specs.py::test_an_attack",
            f"{CRDS}/test_attacks.py::test_attacks_are_refused_at_apply",
        ),
    ),
    Case(
        37,
        "another service account without the right to it",
        "rejected by the API server and at launch, where an event says why",
        "isolation",
        (
            f"{CRDS}/test_tables.py::test_a_refusal_names_field_value_and_rule",
            f"{CRDS}/test_references.py::test_what_an_object_names_needs_the_verb_use",
            f"{COMPONENT}/test_rights.py::test_the_event_says_why_a_reference_is_not_allowed",
            f"{UNIT}/plan/test_launch.py::test_without_it_nothing_is_made",
        ),
    ),
    Case(
        38,
        "hostPath, pod template, javaagent, secret, newline in sparkConf; words that are no instant",
        "rejected, one error per key",
        "isolation",
        (
            f"{CRDS}/test_writers.py::test_spark_settings_that_are_refused",
            f"{CRDS}/test_writers.py::test_each_key_that_is_refused_has_one_error",
            f"{CRDS}/test_writers.py::test_values_without_line_breaks",
            f"{CRDS}/test_tables.py::test_a_refusal_names_field_value_and_rule",
            f"{UNIT}/api/test_options.py::test_owned_spark_settings",
            f"{UNIT}/api/test_options.py::test_each_option_that_is_refused_is_told_once_in_the_order_of_names",
            f"{UNIT}/api/test_hostile_specs.py::test_an_attack",
            f"{CRDS}/test_attacks.py::test_attacks_are_refused_at_apply",
            f"{CRDS}/test_drivers.py::test_a_driver_starts_nothing_else",
        ),
    ),
    Case(
        39,
        "status, annotations, finalizers edited by hand; the object deleted while it is settled",
        "nothing is freed by it; deletion waits",
        "I6, I11",
        (
            f"{SIMULATED}::test_what_people_write_into_status_and_annotations_frees_nothing",
            f"{SIMULATED}::test_writer_deleted_at_every_step",
            f"{SIMULATED}::test_writer_and_table_deleted_in_every_phase",
            f"{CRDS}/test_policies.py::test_evidence_is_written_by_kubelets_only",
            f"{CRDS}/test_policies.py::test_the_finalizer_is_not_taken_off_by_others",
        ),
    ),
    Case(
        40,
        "a pod deletes fences, or gets around its role in etcd",
        "denied",
        "I1, I2",
        (
            f"{COMPONENT}/test_etcd_access.py::test_a_pod_reads_what_the_operator_decides_and_cannot_change_it",
            f"{COMPONENT}/test_etcd_access.py::test_a_transaction_does_not_get_a_pod_around_its_role",
            f"{COMPONENT}/test_etcd_access.py::test_a_range_that_is_not_all_its_own_is_refused",
            f"{COMPONENT}/test_etcd_access.py::test_a_pod_gives_itself_no_rights",
            f"{COMPONENT}/test_etcd_access.py::test_a_lease_of_the_operator_is_not_revoked_by_a_pod",
            f"{COMPONENT}/test_identities.py::test_no_key_of_another_table",
            f"{COMPONENT}/test_identities.py::test_whose_heartbeat_whose_place_whose_lock_whose_instant",
        ),
        "Older releases of etcd",
    ),
)


def numbers_of(scenario: str) -> str:
    """The cases that name a fault of `make faults` among their tests, for its row; `–`: none."""
    return ", ".join(str(case.number) for case in CASES if f"faults::{scenario}" in case.tests) or "–"
