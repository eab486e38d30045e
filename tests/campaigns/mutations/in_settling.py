"""Mutations of the operator: proofs of death, settling, and who is a suspect."""

from __future__ import annotations

from tests.campaigns.mutations.mutation import Edit, mutation

SIMULATED = "tests/tiers/unit/plan/test_simulated.py"
REQUESTS = "tests/tiers/unit/plan/test_simulated_requests.py"
PLAN = "tests/tiers/unit/plan/test_table_plan.py"
GATE = "tests/tiers/unit/plan/gate/test_gate.py"
ATTEMPTS = "tests/tiers/unit/plan/writers/test_attempts.py"
RULES = "tests/tiers/unit/plan/test_rules.py"
RANDOM = "tests/tiers/unit/plan/test_random_worlds.py"
COLLECTION = "tests/tiers/unit/plan/fencing/test_collection.py"
PHASES = "tests/tiers/unit/plan/fencing/test_settling_phases.py"
PROOF = "tests/tiers/unit/model/test_proof.py"
OBSERVE = "tests/tiers/unit/control/test_observe.py"
MANIFESTS = "tests/tiers/unit/manifests/test_manifests.py"
ADAPTER = "tests/tiers/component/operator/test_etcd_adapter.py"


def o(file: str, old: str, new: str = "") -> Edit:
    package = "" if file.startswith("hudi_contract/") else "hudi_operator/"
    return Edit(f"operator/{package}{file}.py", old, new)


HANDS_NOTHING = o("plan/fencing/settling", "if not inc.instants and not inc.claimed and", "if inc.inc and")
FORGETS = o(
    "plan/fencing/settling",
    "    if inc.settling.without_outcome(inc.instants):\n",
    "    if inc.settling.without_outcome(()):\n",
)

PROOFS = (
    mutation(
        "a-table-of-another-agent-is-kept",
        "F528 availability",
        "an agent that has not left a table keeps the next one from its work for ever",
        o("plan/fencing/suspects", "(Reason.REASSIGNED, _replaced(view, inc) and", "(Reason.REASSIGNED, not view and"),
        "tests/tiers/unit/plan/fencing/test_suspects.py::test_an_agent_leaves_a_table_of_another_agent_or_is_fenced",
    ),
    mutation(
        "phase-failed-is-proof",
        "I1 F27",
        "a pod whose phase is Failed counts as dead, whatever its containers do",
        o(
            "model/proof",
            "return pod.phase in containers.TERMINAL and all(c.terminated for c in pod.containers if c.started)",
            "return pod.phase in containers.TERMINAL",
        ),
        f"{PROOF}::test_proofs",
    ),
    mutation(
        "terminated-containers-are-proof",
        "I1 F7",
        "a pod counts as dead before its sandbox is gone",
        o(
            "model/proof",
            "return pod.phase in containers.TERMINAL and all(c.terminated for c in pod.containers if c.started)",
            "return all(c.terminated for c in pod.containers if c.started)",
        ),
        f"{PROOF}::test_proofs",
    ),
    mutation(
        "a-pod-that-is-gone-is-dead",
        "I1 F13 F26",
        "a pod whose object is gone counts as dead",
        o(
            "model/proof",
            "    return node_proof(subject, nodes, fencing)\n\n\ndef ways_out",
            (
                '    return node_proof(subject, nodes, fencing) or (Proof("Gone", "no such pod") if pod is None else '
                "None)\n"
                "\n"
                "\n"
                "def ways_out"
            ),
        ),
        f"{PROOF}::test_proofs",
        f"{SIMULATED}::test_force_deleted_pod_is_no_proof",
        f"{SIMULATED}::test_force_deleted_executor_is_no_proof",
        "tests/tiers/component/operator/test_attempts.py::test_a_force_deleted_driver_is_not_proven_dead",
    ),
    mutation(
        "failed-without-a-container-is-proof",
        "I1 F27",
        "a pod that the garbage collector of a lost node has called Failed counts as dead",
        o(
            "model/proof",
            (
                "    if not started and (hosted or silent(pod) or node is None or not node.ready or not "
                "_bound_to(pod, node)):"
            ),
            "    if not started and silent(pod):",
        ),
        f"{PROOF}::test_proofs",
    ),
    mutation(
        "evidence-is-not-asked-for",
        "F26",
        "a pod without the finalizer, or that was once seen without it, can be proven dead",
        o("model/proof", "if EVIDENCE_FINALIZER not in pod.finalizers or not evidence:", "if not pod.uid:"),
        f"{PROOF}::test_proofs",
    ),
    mutation(
        "evidence-comes-back",
        "F26",
        "a pod that was once seen without its finalizer is evidence again when it has one",
        o(
            "hudi_contract/settle",
            "evidence = pod.evidence and (before is None or before.evidence)",
            "evidence = pod.evidence",
        ),
        "tests/tiers/unit/contract/test_settle.py::test_a_pod_seen_without_evidence_stays_without",
    ),
    mutation(
        "a-node-that-is-gone-is-proof",
        "I1 F13",
        "a node that is gone proves its pods dead although nobody has configured that",
        o("model/proof", "return gone if fencing.trust_node_deletion else None", "return gone"),
        f"{PROOF}::test_proofs",
        f"{SIMULATED}::test_node_proofs_count_only_as_configured",
    ),
    mutation(
        "not-ready-is-proof",
        "I1 F13 F27",
        "a node that is NotReady counts like one that is gone",
        o(
            "model/proof",
            "    if node is None:\n        if not nodes.gone(subject.node):\n",
            "    if node is None or not node.ready:\n        if node is None and not nodes.gone(subject.node):\n",
        ),
        f"{PROOF}::test_trusted_nodes",
    ),
    mutation(
        "a-reboot-proves-nothing",
        "F13",
        "a node that was rebooted does not prove its pods dead: they are waited for for ever",
        o("model/proof", "node.boot_id != subject.seen.boot_id:", "node.boot_id == subject.node:"),
        f"{PROOF}::test_proofs",
    ),
    mutation(
        "attested-for-everybody",
        "I1 F13",
        "a person's word about one pod counts for every pod",
        o(
            "model/proof",
            (
                "if (\n"
                "            subject.uid\n"
                "            and word.pod_uid == subject.uid\n"
                "            and (not subject.node or not word.node or word.node == subject.node)\n"
                "        ):"
            ),
            "if subject.uid and word.pod_uid and (not subject.node or not word.node or word.node == subject.node):",
        ),
        f"{PROOF}::test_attestations_name_pod_and_node",
    ),
    mutation(
        "never-scheduled-is-no-proof",
        "F13",
        "a deleted pod that never had a node is waited for for ever",
        o("model/proof", "    if pod.deleting and not pod.node:\n", "    if pod.deleting and pod.node == pod.uid:\n"),
        f"{PROOF}::test_proofs",
    ),
    mutation(
        "the-clusters-word-needs-no-container",
        "F27",
        "a container that was never reported counts as one that ran",
        o(
            "model/proof",
            "all(c.terminated for c in pod.containers if c.started)\n\n\ndef ran_out",
            "all(c.terminated for c in pod.containers)\n\n\ndef ran_out",
        ),
        f"{PROOF}::test_proofs",
    ),
)

SETTLING = (
    mutation(
        "unlock-without-proof",
        "I1",
        "a fenced incarnation is drained at once, nobody waits for its death",
        o(
            "plan/fencing/settling",
            'return _move(view, inc, Phase.Terminating, "terminating its pods")',
            'return _move(view, inc, Phase.Draining, "terminating its pods")',
        ),
        f"{SIMULATED}::test_a_paused_holder_of_the_lock_cannot_outlive_it",
    ),
    mutation(
        "unlock-without-drain",
        "I1 F7",
        "the lock is deleted as soon as its owner is dead: its last request may be on the wire",
        o("plan/fencing/settling", "    if age < seconds:\n", "    if age < 0:\n"),
        f"{SIMULATED}::test_killed_while_holding_the_lock",
        f"{SIMULATED}::test_killed_after_the_put_keeps_the_commit",
    ),
    mutation(
        "who-has-no-lock-is-not-drained",
        "F17 I5",
        "instants of a dead writer without the lock are rolled back at once: a file that it has sent lands after that",
        o(
            "plan/fencing/settling",
            '    name, seconds = f"drain/{inc.inc}", ',
            '    if view.etcd.lock is None:\n        return _unlocked_or_unlock(view, inc, "")\n'
            '    name, seconds = f"drain/{inc.inc}", ',
        ),
        f"{PHASES}::test_who_has_no_lock_is_drained_before_its_instants_are_rolled_back",
    ),
    mutation(
        "drain-by-the-wall-clock",
        "I1 F7",
        "the drain is counted by times that an earlier operator has written",
        o(
            "plan/fencing/settling",
            "    age = view.timer(name)\n    if age is None:\n",
            (
                '    age = (view.now_ms - inc.record.value["times"]["Terminating"]) / 1000 if inc.record is not None '
                "else None\n"
                "    if age is None:\n"
            ),
        ),
        f"{SIMULATED}::test_operator_dies_in_each_phase",
    ),
    mutation(
        "executors-are-forgotten",
        "I1 I5 F26",
        "executors of a dead driver are neither killed nor proven dead",
        o(
            "plan/fencing/settling",
            "executors = view.executors(inc.pod) if inc.pod else ()",
            "executors: tuple[PodFacts, ...] = ()",
        ),
        f"{SIMULATED}::test_killed_while_holding_the_lock",
        f"{SIMULATED}::test_force_deleted_executor_is_no_proof",
    ),
    mutation(
        "executors-are-found-by-label-only",
        "F26",
        "an executor without our labels is not found by its owner",
        o(
            "plan/core/ownership",
            "    pods = (_labelled(pod, owners) for pod in observed.pods)\n",
            "    pods = (pod for pod in observed.pods if owners or pod)\n",
        ),
        f"{RULES}::test_an_executor_is_known_by_its_owner",
    ),
    mutation(
        "executors-are-listed-once",
        "I1 F26",
        "executors are not listed again after the proof of their driver's death: one that was being created is missed",
        o(
            "plan/fencing/settling",
            "if own in before.proven and record == before and not proofs_missing(view, inc):",
            (
                "if own in record.proven and not [s for u, s in _subjects(view, inc, before).items() if u not in "
                "record.proven]:"
            ),
        ),
        f"{RULES}::test_an_executor_that_appears_last_is_proven_dead_too",
    ),
    mutation(
        "evidence-goes-before-its-proof",
        "F14 F26",
        "a finalizer is dropped although no proof is written",
        o(
            "plan/fencing/settling",
            "for p in live if p.uid in done - shared for",
            "for p in live if p.uid not in shared for",
        ),
        f"{SIMULATED}::test_a_paused_holder_of_the_lock_cannot_outlive_it",
    ),
    mutation(
        "a-table-waits-for-its-rollbacks",
        "F14",
        "a deleted table waits until everything is rolled back, which nobody can do any more in a namespace that goes",
        o(
            "plan/deletion",
            (
                "waiting = [\n"
                "        i for i in view.incs if not i.unlocked and not i.settled and (i.record is not None or "
                "i.registration or i.lock)\n"
                "    ]"
            ),
            "waiting = [i for i in view.incs if not i.settled and (i.record is not None or i.registration or i.lock)]",
        ),
        f"{SIMULATED}::test_namespace_deleted_ends_within_two_minutes",
    ),
    mutation(
        "a-writer-goes-before-it-is-settled",
        "I1",
        "a deleted writer's object goes although an incarnation of it may hold the lock",
        o("plan/deletion", "    if left:\n        phase", "    if left and not writer.obj:\n        phase"),
        f"{SIMULATED}::test_writer_deleted_at_every_step",
    ),
    mutation(
        "unlock-again-without-proof",
        "I1 I2",
        "a lock that comes back after it was deleted is deleted at once",
        o(
            "plan/fencing/settling",
            (
                'return _move(view, inc, Phase.Terminating, "holds the lock again although it is fenced: settling '
                'starts over")'
            ),
            'return _unlocked_or_unlock(view, inc, "again")',
        ),
        f"{PLAN}::test_a_lock_that_comes_back_after_unlock_is_not_deleted_without_proof",
    ),
    mutation(
        "instants-are-forgotten",
        "I4 I7",
        "an incarnation is settled although an instant of it has no outcome",
        FORGETS,
        f"{PLAN}::test_an_instant_without_an_outcome_goes_back_to_the_agent",
    ),
    mutation(
        "nothing-is-handed-to-the-agent",
        "I5 I7",
        "an incarnation is settled after its lock is gone, and its instants stay pending",
        HANDS_NOTHING,
        f"{SIMULATED}::test_killed_while_holding_the_lock",
        redundant="each instant is asked for its outcome once more before it is forgotten",
        pair="instants-stay-pending",
    ),
    mutation(
        "instants-stay-pending",
        "I4 I5 I7",
        (
            "an incarnation is settled after its lock is gone, its instants stay pending, and nobody asks for their "
            "outcome"
        ),
        (HANDS_NOTHING, FORGETS),
        f"{SIMULATED}::test_killed_while_holding_the_lock",
    ),
    mutation(
        "claimed-instants-are-forgotten",
        "I7 F3",
        "instants of others that an incarnation has claimed go with it",
        o(
            "plan/fencing/settling",
            "for t in inc.instants)\n    finish",
            "for t in (*inc.instants, *inc.claimed))\n    finish",
        ),
        f"{PLAN}::test_only_its_own_instants_go_with_an_incarnation",
    ),
    mutation(
        "given-up-is-swept-once",
        "I5 F4",
        "what a writer gave up while it lived is not swept again after its executors are dead",
        o(
            "plan/fencing/settling",
            "if not inc.instants and not inc.claimed and keys.abandoned(inc.inc) not in view.etcd.done:",
            "if not inc.instants and not inc.claimed:",
        ),
        f"{PLAN}::test_given_up_instants_are_swept_once_more_by_the_agent",
    ),
    mutation(
        "unreadable-means-settled",
        "I6",
        "a settle record that cannot be read counts as finished",
        o("hudi_contract/settle", "    phase: Phase = Phase.Fenced", "    phase: Phase = Phase.Settled"),
        "tests/tiers/unit/contract/test_settle.py::test_an_unreadable_phase_starts_from_the_beginning",
    ),
    mutation(
        "a-fence-without-record-is-left-alone",
        "I6",
        "a fenced incarnation without a settle record is never settled",
        o(
            "plan/fencing/suspects",
            (
                "return PartialPlan.of(\n"
                "            UpdateSettle(view.table.table_id, inc.inc, _record(view, inc, FENCE_ALONE), 0),\n"
                '            summary=f"{inc.label} has no settle record",\n'
                "            requeue=1,\n"
                "        )"
            ),
            "return PartialPlan()",
        ),
        f"{RULES}::test_a_fence_without_its_record_is_settled_all_the_same",
    ),
    mutation(
        "an-admission-outlives-its-operator",
        "I6 F23",
        "an attempt has ended in status before its admission is deleted, and nobody looks at it again",
        (
            o(
                "plan/writers/attempts",
                "        late = tuple(DeleteAdmit(view.table.table_id, a.id) for a in writer.attempts if a.admitted)\n",
                "        late: tuple[DeleteAdmit, ...] = ()\n",
            ),
            o(
                "plan/writers/attempts",
                "before=before, ended=entry, summary=(summary,), requeue=0.5)",
                "after=before, ended=entry, summary=(summary,), requeue=0.5)",
            ),
        ),
        f"{SIMULATED}::test_operator_dies_before_and_after_every_action_of_settling",
        f"{SIMULATED}::test_operator_dies_between_actions_all_the_time",
    ),
    mutation(
        "the-plan-goes-on-after-a-failure",
        "I6",
        "a compare that does not hold does not end the plan that was made from it",
        o(
            "control/refused_writes",
            "    if not held:\n        raise Conflict",
            "    if not held and action is None:\n        raise Conflict",
        ),
        "tests/tiers/unit/control/test_loop.py::test_a_compare_that_does_not_hold_ends_the_plan",
    ),
    mutation(
        "a-former-leader-goes-on",
        "I6 F29",
        "an operator that was frozen in the middle of a plan performs the rest of it when it wakes up",
        o(
            "control/executor",
            "                self._check_leader()\n                attempt = attempt_of(action)\n",
            "                attempt = attempt_of(action)\n",
        ),
        "tests/tiers/unit/control/test_loop.py::test_a_former_leader_stops_before_its_next_action",
    ),
    mutation(
        "half-a-list-is-a-list",
        "I1 I11",
        "pods that an API server did not come to list are not there",
        o(
            "adapters/kubernetes",
            """            except ApiError as error:
                raise translate(error, f"list {kind} in {namespace or 'all namespaces'}", writes=False) from error
""",
            """            except ApiError:
                return
""",
        ),
        "tests/tiers/unit/adapters/test_lists_of_pods.py::test_a_list_that_cannot_be_read_whole_is_none",
    ),
    mutation(
        "no-api-server-no-pods",
        "I1 I11",
        "an API server that is away has no pods: everybody is dead",
        o(
            "adapters/kubernetes",
            "        except (TimeoutError, aiohttp.ClientError, OSError) as error:\n",
            """        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            if method == "GET":
                return {}
""",
        ),
        "tests/tiers/unit/adapters/test_lists_of_pods.py::test_a_server_that_is_gone_lists_nothing",
    ),
    mutation(
        "timers-start-again",
        "I6",
        "each look starts the drain anew: it never ends",
        o(
            "control/timers",
            "self._started.setdefault(key, {}).setdefault(name, self._clock())",
            "self._started.setdefault(key, {})[name] = self._clock()",
        ),
        "tests/tiers/unit/control/test_loop.py::test_timers_start_once_and_are_forgotten",
    ),
)

SUSPECTS = (
    mutation(
        "who-has-no-lock-is-left-alone",
        "I7 F12",
        "a dead incarnation that does not hold the lock is never settled, whatever it has left",
        o(
            "plan/fencing/suspects",
            "if inc.named",
            "if inc.lock is not None",
        ),
        f"{SIMULATED}::test_killed_without_the_lock",
    ),
    mutation(
        "only-registrations-are-suspects",
        "F15",
        "an incarnation that only the lock names is never settled",
        o("plan/core/view", "    if etcd.lock is not None:\n        found.add(etcd.lock.read(Lock).inc)\n"),
        f"{PLAN}::test_an_incarnation_that_only_the_lock_names_is_a_suspect",
    ),
    mutation(
        "who-came-back-is-fenced",
        "F29",
        "the fence for a lost heartbeat does not ask whether it is still lost",
        o("plan/fencing/suspects", "if_not_alive=reason == Reason.LEASE_GONE,", "if_not_alive=False,"),
        f"{PLAN}::test_a_lost_lease_is_fenced_only_while_it_is_lost",
    ),
    mutation(
        "a-fast-clock-is-welcome",
        "I10 F19",
        "a host whose clock is far ahead stays registered and takes the table's clock with it",
        o(
            "model/clocks",
            "said_ms - max(now_ms, api_now_ms) > skew_seconds * 1000",
            "said_ms - max(now_ms, api_now_ms) > now_ms",
        ),
        f"{PLAN}::test_a_fast_clock_is_fenced",
    ),
    mutation(
        "the-operators-clock-is-right",
        "F47",
        "a host that is ahead of the operator's clock is fenced, whatever the API server's says",
        o("model/clocks", "said_ms - max(now_ms, api_now_ms) >", "said_ms - now_ms >"),
        f"{PLAN}::test_nobody_is_fenced_because_of_one_clock",
    ),
    mutation(
        "the-api-servers-clock-is-as-it-was",
        "F418 F47",
        "a host is fenced by what the API server said of the time before this look",
        o("control/observe", "self._kubernetes.clock_offset_ms(since=asked)", "self._kubernetes.clock_offset_ms()"),
        "tests/tiers/unit/plan/agent/test_own_agents.py::test_the_api_servers_clock_is_that_of_this_look_or_none",
    ),
    mutation(
        "any-answer-tells-the-time",
        "F418",
        "an answer of the API server tells the time of a look that began after it",
        o("adapters/kubernetes", "if self._api.compared_at >= since else None", "if since >= 0 else None"),
        "tests/tiers/unit/adapters/test_clock_offset.py::test_an_answer_of_before_a_look_says_nothing_in_it",
    ),
    mutation(
        "a-narrow-list-is-a-proof",
        "I1 F26 F51",
        "settling takes an executor without our labels for one that is not there",
        o("plan/fencing/absence", "stored.read(SettleRecord).phase is not Phase.Settled", "not stored"),
        f"{RULES}::test_one_that_appears_last_is_looked_for_whatever_its_labels",
        f"{OBSERVE}::test_what_is_concluded_from_absence_rests_on_a_wide_list",
    ),
    mutation(
        "a-wide-list-is-younger-than-the-keys",
        "I1 F26",
        "pods are listed after etcd was read: who registered in between is taken for nobody",
        o(
            "control/observe",
            (
                "            # Read etcd again, to keep the order.\n"
                "            read = await self._read_etcd(objects.table, spec, agent)\n"
            ),
        ),
        f"{OBSERVE}::test_what_is_concluded_from_absence_rests_on_a_wide_list",
    ),
    mutation(
        "a-record-is-collected-by-a-narrow-list",
        "I1 F26",
        "a settle record is forgotten while an executor without our labels carries its evidence",
        o("plan/fencing/absence", "or any(name.startswith(collection.TIMER) for name in timers)", "or not every"),
        f"{OBSERVE}::test_what_is_concluded_from_absence_rests_on_a_wide_list",
    ),
    mutation(
        "a-deletion-rests-on-a-narrow-list",
        "I5 F26",
        "an object is let go while an executor without our labels carries its evidence",
        o("plan/fencing/absence", 'any(obj["metadata"].get("deletionTimestamp") for obj in every)', "not every"),
        f"{OBSERVE}::test_what_is_concluded_from_absence_rests_on_a_wide_list",
    ),
    mutation(
        "an-end-rests-on-a-narrow-list",
        "F26 F14",
        "executors without our labels stay when their driver has ended",
        o("plan/fencing/absence", "        _ends(pod)\n        or (\n", "        False\n        or (\n"),
        f"{OBSERVE}::test_what_is_concluded_from_absence_rests_on_a_wide_list",
    ),
    mutation(
        "missing-executors-rest-on-a-narrow-list",
        "availability F26",
        "executors without our labels are told to be missing, and their evidence stays",
        o("plan/fencing/absence", "running.get(pod.name, 0) < wanted.get(pod.name, 1)", "pod.name not in wanted"),
        f"{OBSERVE}::test_what_is_concluded_from_absence_rests_on_a_wide_list",
    ),
    mutation(
        "what-a-wide-list-shows-is-forgotten",
        "availability F26",
        "the evidence of an executor without our labels stays for an hour",
        o("control/wide_looks", "if shown_more:", "if shown_more is None:"),
        f"{OBSERVE}::test_what_a_wide_list_has_shown_is_looked_for_until_it_is_gone",
    ),
    mutation(
        "executors-that-are-not-wanted-are-not-there",
        "F419 F26",
        "executors of an attempt are not listed once its writer wants none",
        o("control/observe", 'isinstance(attempt, dict) and attempt.get("executors")', "not isinstance(attempt, dict)"),
        "tests/tiers/unit/plan/agent/test_own_agents.py::test_executors_of_an_attempt_are_read_whatever_the_spec_says_now",
    ),
    mutation(
        "a-clock-costs-retries",
        "F47",
        "an attempt lost to a clock counts against the limit of retries",
        o("plan/writers/runs", "not in (*_HARMLESS, classify.CLOCK_SKEW)", "not in _HARMLESS"),
        f"{ATTEMPTS}::test_attempts_lost_to_a_clock_back_off_and_do_not_count",
    ),
    mutation(
        "holding-the-lock-is-suspicious",
        "availability",
        "an incarnation that is well is fenced when it has had the lock for as long as a lost heartbeat may last",
        o(
            "plan/fencing/suspects",
            'view.elapsed(f"hold/{inc.lock.create_revision}", lock.max_hold_seconds)',
            'view.elapsed(f"hold/{inc.lock.create_revision}", suspect_after)',
        ),
        f"{RANDOM}::test_random_worlds",
    ),
    mutation(
        "the-serving-agent-is-superseded",
        "availability",
        "the pod of the agent that serves is deleted as if a newer generation did",
        o(
            "plan/agent/agent_pods",
            "agents.generation_of(pod) < agents.generation_of(current)",
            "agents.generation_of(pod) <= agents.generation_of(current)",
        ),
        f"{RANDOM}::test_random_worlds",
    ),
    mutation(
        "locks-are-held-for-ever",
        "availability",
        "who holds the lock and lives is never fenced",
        o(
            "plan/fencing/suspects",
            "(Reason.HELD_TOO_LONG, held and not _may_hold(view, inc, asked=asked)),",
            "(Reason.HELD_TOO_LONG, False),",
        ),
        f"{SIMULATED}::test_held_too_long",
    ),
    mutation(
        "creating-a-table-takes-too-long",
        "F21",
        "who creates a table or its index under the closed gate is fenced for holding the lock",
        o(
            "plan/fencing/suspects",
            "return inc.is_agent and (asks or",
            "return inc.is_agent and (False or",
        ),
        f"{RULES}::test_who_creates_the_table_may_hold_its_lock",
    ),
    mutation(
        "lost-heartbeats-do-not-matter",
        "I2",
        "a process whose heartbeat is lost is not fenced",
        o(
            "plan/fencing/suspects",
            '(Reason.LEASE_GONE, inc.alive is None and view.elapsed(f"alive/{inc.inc}", suspect_after)),',
            "",
        ),
        f"{SIMULATED}::test_a_paused_holder_of_the_lock_cannot_outlive_it",
    ),
    mutation(
        "a-lost-executor-ends-its-driver",
        "availability",
        "a driver is fenced when one of its executors ends",
        o(
            "plan/fencing/suspects",
            "(Reason.POD_TERMINATED, pod is not None and containers.ended(pod)),",
            (
                "(Reason.POD_TERMINATED, any(containers.ended(p) for p in [*view.executors(inc.pod), *([pod] if pod "
                "else [])])),"
            ),
        ),
        f"{RULES}::test_the_loss_of_an_executor_is_not_the_end_of_its_driver",
    ),
    mutation(
        "fenced-at-the-first-missed-beat",
        "availability",
        "a process is fenced as soon as its heartbeat is missed",
        o(
            "plan/fencing/suspects",
            'inc.alive is None and view.elapsed(f"alive/{inc.inc}", suspect_after)',
            "inc.alive is None",
        ),
        f"{SIMULATED}::test_a_short_pause_has_no_consequences",
    ),
)
