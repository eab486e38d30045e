"""Mutations of what the operator takes for a death: boots, kubelets' words, containers."""

from __future__ import annotations

from tests.campaigns.mutations.in_settling import ADAPTER, MANIFESTS, OBSERVE, PHASES, PROOF, RULES, o
from tests.campaigns.mutations.mutation import Edit, mutation

BESIDE = "tests/tiers/unit/plan/fencing/test_containers_beside.py"
EVENTS = "tests/tiers/unit/control/test_events_last.py"
LIMIT = "tests/tiers/unit/control/test_event_limit.py"
EVIDENCE = "tests/tiers/unit/plan/fencing/test_pod_evidence.py"
SIMULATED = "tests/tiers/unit/plan/test_simulated.py"
SUSPECTS = "tests/tiers/unit/plan/fencing/test_suspects.py"
SUCCESSORS = "tests/tiers/unit/plan/writers/test_successors.py"
UNNAMED = "tests/tiers/unit/plan/fencing/test_lost_without_record.py"
SETTLE = "tests/tiers/unit/contract/test_settle.py"
FEED = "tests/tiers/unit/plan/test_commit_feed.py"
RACES = "tests/tiers/component/operator/test_finalizer_races.py"
REFUSED = "tests/tiers/unit/plan/fencing/test_refused_pods.py"
SIGHTINGS = "tests/tiers/unit/plan/fencing/test_sightings.py"

NAMED = (
    mutation(
        "agents-pods-are-named-to-nobody",
        "F649",
        "a deletion waits for an agent's pod, and no condition says how to end that",
        o(
            "plan/fencing/evidence",
            "    if role == naming.ROLE_AGENT:\n",
            "    if role == naming.ROLE_AGENT and not view.table.ref.deleting:\n",
        ),
        f"{UNNAMED}::test_a_deletion_says_how_to_end_the_wait_for_an_agents_pod",
    ),
)

BOOTS = (
    mutation(
        "a-boot-id-needs-no-sighting",
        "I1 F13 F43",
        "the boot id that a JVM has read is taken for its node's",
        (
            o(
                "plan/fencing/sightings",
                " or node.boot_id != inc.boot_id:\n        return None",
                ":\n        return None",
            ),
            o(
                "plan/fencing/sightings",
                "machine=node.machine, boot_id=node.boot_id",
                "machine=node.machine, boot_id=inc.boot_id",
            ),
        ),
        f"{SIGHTINGS}::test_what_is_seen_too_late_proves_nothing",
        f"{SIGHTINGS}::test_a_sandbox_with_a_kernel_of_its_own_is_no_reboot",
    ),
    mutation(
        "any-machine-of-that-name-reboots",
        "I1 F13 F43",
        "another machine under the node's name counts as the node, rebooted",
        o(
            "model/proof",
            "return (node.name, node.uid, node.machine) == (seen.node, seen.node_uid, seen.machine)",
            "return node.name == seen.node",
        ),
        f"{SIGHTINGS}::test_another_machine_under_the_nodes_name_is_no_reboot",
        f"{SIGHTINGS}::test_another_machine_behind_the_same_object_is_no_reboot",
        f"{PROOF}::test_proofs",
        f"{PROOF}::test_trusted_nodes",
    ),
    mutation(
        "an-executor-is-rebooted-with-its-driver",
        "I1 F26 F43",
        "the boot of a driver's node is taken for that of its executors",
        o(
            "plan/fencing/settling",
            "node=pod.node, evidence=pod",
            "node=pod.node, seen=sightings.seen(view, inc), evidence=pod",
        ),
        f"{SIGHTINGS}::test_a_reboot_proves_nothing_of_an_executor",
    ),
    mutation(
        "a-sighting-of-anybody-counts",
        "I1 F43",
        "a note about another pod or node is believed",
        o(
            "plan/fencing/sightings",
            "if not whole or noted.pod_uid != inc.pod_uid or noted.node != inc.node:",
            "if not whole:",
        ),
        f"{SIGHTINGS}::test_a_note_of_something_else_proves_nothing",
    ),
)

NODES = (
    mutation(
        "a-node-that-was-not-read-is-gone",
        "I1 I11 F610",
        "a node that nobody asked for counts as deleted",
        o("model/proof", "if not nodes.gone(subject.node):", "if not nodes:"),
        f"{PROOF}::test_a_node_that_nobody_asked_for_is_not_gone",
    ),
    mutation(
        "the-nodes-of-gone-executors-are-not-read",
        "F610 availability",
        "the node of an executor whose object is gone is not asked for",
        o(
            "plan/fencing/absence",
            "        names |= {pod.node for record in unsettled for pod in record.pods.values()}\n",
            "",
        ),
        f"{OBSERVE}::test_the_nodes_of_executors_that_are_gone_are_asked_for",
        f"{SIMULATED}::test_the_node_of_a_vanished_executor_is_asked_for",
    ),
)

EXECUTORS = (
    mutation(
        "evidence-goes-before-the-object",
        "F611 availability",
        "an executor's evidence is dropped while its kubelet, or somebody else's finalizer, keeps the object",
        o(
            "plan/fencing/evidence",
            "return _drop(view, pod) if pod.goes_with(EVIDENCE_FINALIZER) else []",
            "return _drop(view, pod)",
        ),
        f"{EVIDENCE}::test_of_a_living_drivers_executor_it_goes_with_the_object_only",
        f"{SIMULATED}::test_executors_that_have_just_ended_are_proven_with_their_driver",
    ),
)

NUMBERS = (
    mutation(
        "a-pods-name-says-whose-incarnation-it-is",
        "I1 F612",
        "the end of another pod of that name proves an incarnation dead",
        o(
            "plan/core/view",
            'told("pod_uid") or once.uids.get((namespace, pod), ""), told("node")',
            'once.uids.get((namespace, pod), "") or told("pod_uid"), told("node")',
        ),
        f"{SUSPECTS}::test_an_incarnation_is_of_the_pod_that_it_registered_from",
    ),
    mutation(
        "a-number-that-only-etcd-remembers-is-given-again",
        "I1 F612",
        "a second pod gets the number of an attempt whose process lives",
        o(
            "plan/writers/admission",
            "return max(told, *(view.numbers_in_etcd(writer.spec) if writer.spec is not None else ()), 0) + 1",
            "return told + 1",
        ),
        f"{SUCCESSORS}::test_a_number_that_only_etcd_remembers_is_not_given_again",
    ),
    mutation(
        "who-is-in-no-status-is-in-nobodys-way",
        "I9 F5 F612",
        "an attempt starts while an earlier one, which only etcd knows, holds the lock",
        o(
            "plan/writers/admission",
            "    if forgotten is not None:\n",
            "    if forgotten is not None and t.writer is None:\n",
        ),
        f"{SUCCESSORS}::test_a_number_that_only_etcd_remembers_is_not_given_again",
    ),
)

UNRECORDED = (
    mutation(
        "without-a-record-only-the-kubelet-is-heard",
        "F613 availability",
        "the evidence of a pod that no settle record names is kept for ever when its node is lost",
        o(
            "plan/fencing/evidence",
            "return prove(_subject(view, pod), pod, view.nodes, view.table.fencing) is not None",
            "return prove(_subject(view, pod), pod, view.nodes, type(view.table.fencing)()) is not None",
        ),
        f"{UNNAMED}::test_what_settling_counts_as_proof_counts_for_them",
    ),
    mutation(
        "an-attempt-without-registration-waits-for-its-node",
        "F613 availability",
        "an attempt that has not registered stays active while its node does not come back",
        o("plan/writers/attempts", "return not attempt.admitted and _is_lost(view, pod)", "return False"),
        f"{UNNAMED}::test_an_attempt_that_never_registered_ends_with_its_node",
        f"{UNNAMED}::test_it_does_not_keep_a_writer_from_being_suspended",
    ),
    mutation(
        "a-lost-attempt-ends-before-its-admission-does",
        "F23 F613",
        "an attempt of a lost node ends although it may still register",
        o(
            "plan/writers/attempts",
            "return not attempt.admitted and _is_lost(view, pod)",
            "return _is_lost(view, pod)",
        ),
        f"{UNNAMED}::test_one_that_has_registered_meanwhile_is_fenced",
    ),
    mutation(
        "a-node-that-blinks-ends-attempts",
        "F613 availability",
        "an attempt is given up while it may still end by itself",
        o(
            "plan/writers/attempts",
            "return pod.deleting and silent and over is not None and view.earliest_ms > over",
            "return pod.deleting and silent",
        ),
        f"{UNNAMED}::test_an_attempt_that_never_registered_ends_with_its_node",
    ),
    mutation(
        "pods-without-a-record-are-told-to-nobody",
        "F613 availability",
        "nobody is told which pod keeps a deletion from coming to its end",
        o("plan/table_status", "    return [*left[:LEFT_NAMED], *others]\n", "    return others\n"),
        f"{UNNAMED}::test_what_settling_counts_as_proof_counts_for_them",
    ),
    mutation(
        "only-who-is-settled-is-attested",
        "F613 availability",
        "kubectl hudi attests no pod that no settle record names, although the condition asks for it",
        Edit("operator/hudi_kubectl/verbs.py", "found.setdefault(pod, (uid, node))", "found.pop(pod, None)"),
        "tests/tiers/unit/kubectl/test_verbs.py::test_a_pod_of_nobody_who_is_settled_is_attested",
    ),
)

AGENTS = (
    mutation(
        "an-admitted-agent-needs-no-evidence",
        "I1 F23 F615",
        "an agent's pod goes while this table still lets it register",
        o(
            "plan/agent/agent_pods",
            "        if leaving(pod) and _attempt(pod) in view.etcd.admits:\n",
            "        if leaving(pod) and pod.uid in view.etcd.admits:\n",
        ),
        f"{RULES}::test_an_agents_pod_stays_while_it_is_not_known_who_needs_it",
    ),
    mutation(
        "an-agent-admitted-elsewhere-needs-no-evidence",
        "I1 F23 F615",
        "an agent's pod goes while another table still lets it register",
        o("plan/agent/agent_pods", "    return unproven_uids(etcd) | admitted\n", "    return unproven_uids(etcd)\n"),
        f"{OBSERVE}::test_a_table_that_admits_a_dead_agent_keeps_its_pod",
    ),
)

MANY = (
    mutation(
        "a-proven-pod-is-named-twice",
        "F616 availability",
        "a settle record keeps the names of pods whose death it has recorded",
        o(
            "hudi_contract/settle",
            "pods={uid: pod for uid, pod in self.pods.items() if uid not in added}",
            "pods=self.pods",
        ),
        f"{SETTLE}::test_a_pod_is_named_until_its_death_is_recorded",
        f"{PHASES}::test_more_executors_than_a_record_can_name",
    ),
    mutation(
        "a-record-that-is-too-long-is-written",
        "F616 availability",
        "one incarnation with too many pods ends the plan of its table each time",
        o("plan/fencing/settling", "    if size <= most:\n", "    if size:\n"),
        f"{PHASES}::test_more_executors_than_a_record_can_name",
    ),
    mutation(
        "a-record-without-names-is-certain",
        "I2 F616",
        "the fence of an incarnation is collected although an executor's death is only a person's word",
        o(
            "plan/fencing/collection",
            "{inc.pod_uid, *record.pods, *record.proofs} - ",
            "{inc.pod_uid, *record.pods} - ",
        ),
        "tests/tiers/unit/plan/fencing/test_collection.py::test_a_record_that_is_not_over_or_not_certain_stays",
    ),
)

CONTAINERS = (
    mutation(
        "an-attempt-ends-with-its-pod",
        "F45 availability",
        "an attempt goes on until every container of its pod has ended",
        o(
            "model/containers",
            "return pod.phase in TERMINAL or (jvm is not None and jvm.terminated)",
            "return pod.phase in TERMINAL",
        ),
        f"{BESIDE}::test_an_attempt_ends_with_its_driver",
    ),
    mutation(
        "a-driver-that-ended-is-dead",
        "I1 F7 F45",
        "the end of the driver's container is taken for the death of the pod",
        o(
            "model/proof",
            "    if not terminal(pod):\n        return None\n",
            "    if not containers.ended(pod):\n        return None\n",
        ),
        f"{PROOF}::test_proofs",
        f"{BESIDE}::test_proof_still_needs_every_container",
    ),
    mutation(
        "an-executors-pod-is-left-to-others",
        "F45 availability",
        "an executor's pod is left alone while a container beside it runs",
        o(
            "plan/fencing/evidence",
            "return [kill(pod)] if (containers.held(pod) or silent(pod)) and not pod.deleting else []",
            "return []",
        ),
        f"{BESIDE}::test_an_executor_that_ended_is_taken_away_while_its_driver_lives",
    ),
    mutation(
        "every-container-holds-a-pod",
        "F45 availability",
        "a pod is deleted, with its log, although the kubelet is about to end it",
        o("plan/fencing/evidence", " or ran_out(pod) or containers.winding_down(pod) else", " or ran_out(pod) else"),
        f"{BESIDE}::test_an_attempt_ends_with_its_driver",
    ),
    mutation(
        "any-container-speaks-for-the-driver",
        "F45 availability",
        "the exit code of a container beside the driver decides what became of the attempt",
        o("model/classify", "        [jvm] if jvm is not None and jvm.terminated else [],\n", ""),
        "tests/tiers/unit/model/test_classify.py::test_a_container_beside_the_drivers_has_no_say",
    ),
)

SUCCESSES = (
    mutation(
        "any-container-tells-of-a-success",
        "F243",
        "a run whose driver never started has succeeded",
        o(
            "model/classify",
            "    ours = main is not None and main is containers.host(pod)\n",
            "    ours = main is not None and pod.phase in containers.TERMINAL\n",
        ),
        "tests/tiers/unit/model/test_classify.py::test_nobody_but_the_driver_tells_of_a_success",
    ),
)

REFUSALS = (
    mutation(
        "a-refusal-is-proof",
        "I1 F27 F52",
        "a pod that a kubelet has refused counts as dead before the kubelet has looked for its containers",
        o("model/proof", "(hosted or silent(pod) or node is None", "(hosted or node is None"),
        f"{PROOF}::test_proofs",
        f"{REFUSED}::test_a_refused_executor_is_proven_when_the_kubelet_has_looked",
        f"{REFUSED}::test_a_refused_executor_of_a_living_driver_goes",
    ),
    mutation(
        "a-refused-pod-is-not-deleted",
        "F52 availability",
        "a refused pod is waited for, and nothing makes the kubelet say more",
        (
            o("plan/fencing/evidence", "(containers.held(pod) or silent(pod))", "(containers.held(pod) or pod_proof)"),
            o("plan/agent/agent_pods", "        return silent(pod)\n", "        return silent is None\n"),
        ),
        f"{REFUSED}::test_a_refused_driver_and_a_refused_agent_leave_nothing_behind",
    ),
    mutation(
        "a-node-that-is-back-has-looked",
        "I1 F27 F614",
        "a phase that was written while a node was away counts as its kubelet's word when it is back",
        o("model/proof", "return since < over - 1000 * (pod.grace_seconds or 0)", "return since < over + 1e12"),
        f"{PROOF}::test_proofs",
        f"{REFUSED}::test_what_was_written_before_the_node_was_back_is_no_report",
    ),
    mutation(
        "a-node-out-of-service-has-looked",
        "I1 F27 F614",
        "what the garbage collector writes of a pod on a node out of service counts as its kubelet's word",
        o("model/proof", "    if node.out_of_service:\n        return False\n", ""),
        f"{PROOF}::test_proofs",
    ),
    mutation(
        "any-kubelets-word-counts",
        "I1 F27 F43",
        "that nothing was found of a pod is believed of whatever machine has the node's name now",
        o(
            "model/proof",
            "return bool(node.created_at) and node.created_at < pod.created_at",
            "return node.name == pod.node",
        ),
        f"{PROOF}::test_proofs",
    ),
)

OWNERS = (
    mutation(
        "executors-are-known-by-label-only",
        "I1 F26 F51",
        (
            "an executor that a pod template has left without our labels is overlooked by settling and by whoever "
            "drops evidence"
        ),
        o("plan/core/view", "    observed = labelled(observed)\n", ""),
        f"{RULES}::test_an_executor_without_our_labels_is_settled_with_its_driver",
        f"{RULES}::test_the_evidence_of_an_executor_without_our_labels_goes_like_any_other",
    ),
)

OUTSIDE = (
    mutation(
        "the-kubelets-clock-decides",
        "F57 availability",
        "the next agent is started by the clock of the node on which the last one ended",
        o(
            "plan/agent/agents",
            "min((ended_ms - view.now_ms) / 1000 + delay, delay - (view.timer(timer) or 0.0))",
            "(ended_ms - view.now_ms) / 1000 + delay",
        ),
        "tests/tiers/unit/plan/agent/test_agents.py::test_the_next_agent_does_not_wait_for_the_kubelets_clock",
    ),
    mutation(
        "a-race-is-a-refusal",
        "F49 availability",
        "a finalizer that somebody else has changed meanwhile is taken for a refusal",
        o("adapters/kubernetes", "if error.status == 422 and await", "if error.status == 423 and await"),
        f"{RACES}::test_an_object_that_somebody_else_has_changed_is_a_conflict",
    ),
    mutation(
        "a-watch-never-forgets-its-failures",
        "F50 availability",
        "the back-off of a watch grows with every interruption, whatever lies between them",
        o(
            "adapters/etcd_watch",
            "        self._failures = 0\n        if response.created",
            "        if response.created",
        ),
        f"{ADAPTER}::test_a_watch_that_works_again_is_repeated_soon_when_it_breaks_once_more",
    ),
)

PEOPLE = (
    mutation(
        "a-living-pod-is-attested",
        "I1",
        "kubectl hudi takes a person's word for the death of a pod that its kubelet calls ready",
        Edit(
            "operator/hudi_kubectl/verbs.py",
            "if raw is not None and not how.force and lives:",
            "if raw is not None and how.force and lives:",
        ),
        "tests/tiers/unit/kubectl/test_verbs.py::test_a_pod_that_lives_is_not_attested",
    ),
    mutation(
        "anothers-word-is-written-over",
        "availability",
        "what somebody else has added to a list meanwhile is gone",
        Edit(
            "operator/hudi_kubectl/changing.py",
            '{"metadata": {"resourceVersion": thing.meta.get("resourceVersion")}}',
            '{"metadata": {}}',
        ),
        "tests/tiers/unit/kubectl/test_verbs.py::test_a_list_is_made_anew_when_somebody_else_has_changed_it",
    ),
    mutation(
        "every-commit-is-an-event",
        "F250 availability",
        "a busy table makes an Event for each commit",
        o(
            "plan/table_events",
            "    before = {settling.incarnation",
            '    found.extend(event("Normal", "Committed", c["instant"]) for c in status["timeline"]["commits"])\n'
            "    before = {settling.incarnation",
        ),
        f"{FEED}::test_commits_are_no_events",
    ),
    mutation(
        "events-without-a-limit",
        "F250 availability",
        "a table may have any number of Events",
        o("control/event_limit", "        if share.saved < EVERY_SECONDS:\n", "        if share.saved < -1e9:\n"),
        f"{LIMIT}::test_a_table_has_some_events_at_once_and_then_one_from_time_to_time",
        f"{LIMIT}::test_an_executor_sends_no_more",
    ),
    mutation(
        "one-share-for-all-events",
        "F250 availability",
        "frequent Events of attempts leave no room for a warning about the table",
        o("control/event_limit", "(*table, event.kind, event.type)", '(*table, "", "")'),
        f"{LIMIT}::test_what_is_frequent_does_not_hide_what_is_rare",
    ),
    mutation(
        "an-event-once-for-ever",
        "F251 availability",
        "what happens again the next day is told by no Event",
        o("control/event_limit", "KEPT_SECONDS = 3600.0", "KEPT_SECONDS = 3.6e9"),
        f"{LIMIT}::test_what_happens_again_is_told_again_when_its_event_is_gone",
    ),
    mutation(
        "everything-waits-for-events",
        "F55 availability",
        "what a plan does waits for the events that come before it",
        o(
            "control/executor",
            "                    events.append(action)\n",
            "                    await self._emit_event(context, action)\n",
        ),
        f"{EVENTS}::test_events_come_last",
        f"{EVENTS}::test_events_that_are_slow_do_not_keep_the_table",
    ),
    mutation(
        "gauges-follow-writes-only",
        "F54 availability",
        "a table's gauges are set only when its status is written",
        o(
            "metrics/meter",
            "        self._show(observed, done)\n",
            "        if done:\n            self._show(observed, done)\n",
        ),
        f"{FEED}::test_a_silent_table_has_its_series_after_a_restart",
    ),
)

LAUNCHES = (
    mutation(
        "other-requests-than-the-crds-say",
        "F53 availability",
        "pods get another CPU request than the CRDs' text says",
        o("manifests/pods", 'requests.setdefault("cpu", "100m")', 'requests.setdefault("cpu", "1")'),
        f"{MANIFESTS}::test_what_the_crds_say_about_requests_is_what_pods_get",
    ),
    mutation(
        "any-path-for-any-jvm-option",
        "F56 availability",
        "a JVM option may name a file of more options",
        o("api/pod_settings", '_PATHS = "XX:(HeapDumpPath|ErrorFile)=', '_PATHS = "XX:[A-Za-z]+='),
        f"{MANIFESTS}::test_jvm_options_that_lead_elsewhere_are_refused",
        f"{MANIFESTS}::test_the_crds_and_the_code_allow_the_same",
    ),
    mutation(
        "the-crd-knows-the-names",
        "F56 availability",
        "the operator believes that every variable's name was looked at",
        o("api/pod_settings", "if re.fullmatch(OWNED_ENV, name.upper()):", "if not name:"),
        f"{MANIFESTS}::test_names_of_variables_are_looked_at_again",
    ),
)
