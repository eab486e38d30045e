"""Mutations of what the operator reads and writes, and when: nothing for nothing, and nothing too
late.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_settling import ATTEMPTS, o
from tests.campaigns.mutations.mutation import mutation

MISSING = "tests/tiers/unit/plan/writers/test_executors_missing.py"
LATE = "tests/tiers/unit/control/test_late_statuses.py"
OBSERVE = "tests/tiers/unit/control/test_observe.py"
MEMORY = "tests/tiers/unit/control/test_memory.py"
LOOP = "tests/tiers/unit/control/test_loop.py"
LISTS = "tests/tiers/unit/adapters/test_lists_of_pods.py"
LEADER = "tests/tiers/unit/adapters/test_leader.py"
TABLES = "tests/tiers/unit/control/test_tables_of_an_agent.py"
ROUTING = "tests/tiers/unit/control/test_routing.py"

LATE = "tests/tiers/unit/control/test_late_statuses.py"

LARGE = "tests/tiers/unit/control/test_large_objects.py"

SCALE = (
    mutation(
        "all-consents-of-a-look-at-once",
        "F629",
        "the questions of one look fill the queue that the looks at all tables share",
        o("control/consents", "asyncio.Semaphore(AT_ONCE)", "asyncio.Semaphore(len(named) + 1)"),
        f"{LARGE}::test_one_look_asks_for_few_secrets_at_once",
    ),
    mutation(
        "large-objects-are-kept",
        "F644",
        "eight HudiTables take the memory that the operator has",
        o("control/memory", '        obj["spec"] = bounds.kept(obj["spec"])\n', "        pass\n"),
        f"{LARGE}::test_events_keep_no_large_object",
        f"{LARGE}::test_a_look_keeps_no_large_object",
    ),
    mutation(
        "each-deletion-looks-at-all",
        "F644",
        "thousands of deletions make each further one slow",
        o(
            "control/memory",
            "        while self._gone and now - self._gone[oldest := next(iter(self._gone))] >= GONE_SECONDS:\n"
            "            del self._gone[oldest]\n",
            "        self._gone = {one: at for one, at in self._gone.items() if now - at < GONE_SECONDS}\n",
        ),
        f"{LARGE}::test_a_deletion_looks_at_old_ones_only",
    ),
    mutation(
        "ten-conflicts-are-all",
        "F647",
        "the conflicts of an attempt stand still at the number that its report lists",
        o(
            "plan/writers/writer_status",
            "max(len(told.conflicts), told.conflict_count, final.conflicts)",
            "len(told.conflicts)",
        ),
        "tests/tiers/unit/halves/test_halves.py::test_more_conflicts_are_counted_than_are_listed",
    ),
    mutation(
        "what-alerts-count-begins-with-one",
        "F646",
        "an alert does not see failures before the first scrape that has their series",
        o("metrics/meter", "        self._begin_at_zero()\n"),
        "tests/tiers/unit/metrics/test_catalog.py::test_what_alerts_ask_for_by_its_increase_begins_at_zero",
    ),
    mutation(
        "what-waits-is-not-known",
        "F622 F23",
        "a pod whose uid is not in status yet is made again under its number",
        o(
            "control/late_statuses",
            'yield {**obj, "status": late.action.status}',
            'yield {**obj, "status": obj.get("status") or {}}',
        ),
        f"{LATE}::test_a_pod_that_somebody_takes_away_meanwhile_is_not_made_again",
    ),
    mutation(
        "what-waits-is-known-better",
        "F622",
        "a status that was made of an older object is seen in place of the present one",
        o("control/late_statuses", ") == late.action.resource_version:", ") != late.action.resource_version:"),
        f"{LATE}::test_an_object_that_was_changed_meanwhile_is_seen_as_it_is",
    ),
    mutation(
        "any-addition-may-wait",
        "F622",
        "that an attempt is stopped for a deadline, or has a gate, waits in memory",
        o(
            "plan/writers/starting_status",
            "return changed <= fields and not changed & before.keys()",
            "return not changed & before.keys()",
        ),
        f"{LATE}::test_what_may_wait",
    ),
    mutation(
        "it-waits-for-ever",
        "F622",
        "of a driver that is never registered no status tells anything",
        o("control/late_statuses", "if now - late.since >= LATE_SECONDS]", "if now < late.since]"),
        f"{LATE}::test_a_driver_that_takes_long_is_told_of",
    ),
    mutation(
        "an-agent-is-given-any-number-of-tables",
        "availability",
        "a namespace of a thousand tables has one agent",
        o(
            "control/index",
            "            if len(served - {key}) < self.max_tables:\n",
            "            if self.max_tables:\n",
        ),
        f"{TABLES}::test_a_table_more_than_one_agent_is_given_has_another_one",
    ),
    mutation(
        "tables-move-to-where-there-is-room",
        "availability",
        "a table changes its agent when another operator leads, and waits for the new one",
        o("api/tolerant", "(unreadable or stored in agents_of(table, default_image))", "unreadable"),
        f"{TABLES}::test_no_table_moves_by_itself",
    ),
    mutation(
        "only-first-agents-are-in-use",
        "availability",
        "each table ends the pods of the agents that serve what is more than one is given",
        o("control/observe", 'self._index.agent(table, spec, "")', "spec.agent_name(self._config.spark_image)"),
        f"{TABLES}::test_an_agent_that_is_not_the_first_is_in_use",
    ),
    mutation(
        "two-agents-are-given-one-table",
        "availability",
        "an agent is told of a table before its choice is written down; another operator chooses another one",
        o(
            "plan/agent/agents",
            "(actions if before == view.agent else late).append(PutAssignment(",
            "(actions if before == view.agent else actions).append(PutAssignment(",
        ),
        "tests/tiers/unit/plan/agent/test_agents.py::test_an_agent_is_told_of_a_table_once_status_names_it",
    ),
    mutation(
        "each-name-asks-for-all",
        "F566",
        "a HudiWriter without a HudiTable has its whole namespace listed every 15 s",
        o("control/driver_bindings", "            self._looked.add(key)\n", "            pass\n"),
        "tests/tiers/unit/control/test_driver_bindings.py::test_a_name_without_a_table_is_looked_after_once",
    ),
    mutation(
        "an-election-ends-with-one-round",
        "F514",
        "a replica whose API server has answered nonsense once never leads again",
        o("adapters/leader", "        except Exception:\n", "        except OSError:\n"),
        f"{LEADER}::test_a_round_that_fails_is_followed_by_another",
    ),
    mutation(
        "any-digit-is-a-revision",
        "F514",
        "an annotation of the Lease keeps every replica from leading",
        o("adapters/etcd", "_REVISION.fullmatch(value)", "value.isdigit()"),
        f"{LEADER}::test_an_annotation_that_is_no_revision_does_not_count",
    ),
    mutation(
        "backs-off-from-a-lost-node",
        "F260",
        "the attempt after a killed driver or a lost node waits for a back-off",
        o("plan/writers/runs", "last.class_ in classify.LOST_WITH_ITS_PLACE", "not last.class_"),
        f"{ATTEMPTS}::test_who_was_ended_from_outside_is_followed_at_once",
    ),
    mutation(
        "killed-as-fast-as-it-starts",
        "F260",
        "attempts that are killed as soon as they have started follow each other without a pause",
        o(
            "plan/writers/runs",
            "since = ended if began is None else began",
            "since = ended if began is None else 0",
        ),
        f"{ATTEMPTS}::test_who_was_ended_from_outside_is_followed_at_once",
    ),
    mutation(
        "shared-objects-for-each-pod",
        "F261",
        "what pods of a namespace share is applied again for each of them",
        o(
            "control/applied_objects",
            "manifest) and self._clock() - at < KEPT_SECONDS",
            "manifest) and self._clock() < at",
        ),
        f"{LOOP}::test_what_a_namespace_shares_is_written_when_it_changes",
    ),
    mutation(
        "once-is-for-ever",
        "F261",
        "what pods of a namespace share is never applied again, although somebody may have deleted it",
        o(
            "control/applied_objects",
            "manifest) and self._clock() - at < KEPT_SECONDS",
            "manifest) and self._clock() >= at",
        ),
        f"{LOOP}::test_what_a_namespace_shares_is_written_when_it_changes",
    ),
    mutation(
        "another-namespace-of-that-name",
        "F261",
        "a namespace that was made anew is taken for the one of that name before it",
        o("control/applied_objects", "(uid, known) == (namespace_uid, manifest)", "known == manifest"),
        f"{LOOP}::test_what_a_namespace_shares_is_written_when_it_changes",
    ),
    mutation(
        "the-authority-is-believed-to-be-there",
        "F261",
        "a pod is made that waits for a ConfigMap that somebody has deleted",
        o("control/executor", " and await self._is_there(manifest):", ":"),
        f"{LOOP}::test_no_pod_starts_without_the_gateways_authority",
    ),
    mutation(
        "a-refusal-teaches-nothing",
        "F261",
        "pods are refused until what they miss in their namespace is applied for another reason",
        o("control/executor", '            self._applied.forget(meta["namespace"])\n'),
        f"{LOOP}::test_a_refused_pod_has_its_namespace_made_again",
    ),
    mutation(
        "each-look-makes-the-key",
        "F150 availability",
        "each look at a pod that starts asks the API server for a key that is there",
        o("control/applied_objects", 'float("-inf")) < KEY_SECONDS', 'float("inf")) < KEY_SECONDS'),
        f"{LOOP}::test_a_key_is_made_with_its_pod_and_not_asked_for_at_each_look",
    ),
    mutation(
        "a-key-that-was-deleted-is-there",
        "F150 availability",
        "a pod whose key somebody has deleted waits for ever",
        o("control/applied_objects", "< KEY_SECONDS", "< 1e9"),
        f"{LOOP}::test_a_key_is_made_with_its_pod_and_not_asked_for_at_each_look",
    ),
    mutation(
        "what-a-table-counts-is-written-at-once",
        "availability",
        "the status of a table is written for each of many writers that start together",
        o("control/counts", 'float("-inf")) < COUNTS_SECONDS', 'float("inf")) < COUNTS_SECONDS'),
        f"{LOOP}::test_a_status_that_only_counts_writers_waits_a_moment",
    ),
    mutation(
        "whatever-a-table-says-waits",
        "availability",
        "a condition of a table is written late",
        o("control/counts", "if changed <= _COUNTS and now", "if now"),
        f"{LOOP}::test_a_status_that_only_counts_writers_waits_a_moment",
    ),
    mutation(
        "running-is-polled",
        "F262",
        "a table whose writers run is looked at every 15 s",
        o("control/loop", ' or conditions.is_true(status, "Running")'),
        f"{LOOP}::test_a_quiet_table_is_looked_at_ever_less_often",
    ),
    mutation(
        "an-idle-stream-is-polled",
        "F262",
        "a table whose stream has caught up is looked at every 11 s because it has a deadline",
        o("plan/writers/deadlines", "return not (last.waiting_since and report.stage == Stage.WAITING)", "return True"),
        f"{LOOP}::test_a_deadline_is_polled_while_no_event_tells_of_it",
    ),
    mutation(
        "deadlines-are-not-polled",
        "availability",
        "a deadline is over, and nobody looks for four minutes",
        o("control/loop", "return not (due or _settles(observed)", "return not (_settles(observed)"),
        f"{LOOP}::test_a_deadline_is_polled_while_no_event_tells_of_it",
    ),
    mutation(
        "ending-is-at-rest",
        "F262",
        "a table with a pod that is about to start or to end is looked at every four minutes",
        o(
            "control/loop",
            'return pod.deleting or not (pod.phase == "Running" or waits)',
            'return pod.phase == "Unknown"',
        ),
        f"{LOOP}::test_a_quiet_table_is_looked_at_ever_less_often",
    ),
    mutation(
        "held-unseen",
        "F262",
        "how long a lock is held is measured from the next look on, which may be minutes away",
        o("control/held_locks", "if since <= until]", "if since > until + 1e9]"),
        f"{ROUTING}::test_a_lock_that_stays_leads_to_its_table_once",
    ),
    mutation(
        "a-look-for-each-commit",
        "F262",
        "a lock that was given back leads to a look",
        o(
            "control/held_locks",
            "            if match and change.deleted:\n",
            "            if match and change.deleted is None:\n",
        ),
        f"{ROUTING}::test_a_lock_that_stays_leads_to_its_table_once",
    ),
    mutation(
        "writers-of-the-whole-namespace",
        "F263",
        "each look lists the writers of all tables of the namespace",
        o("adapters/kubernetes", 'if self._selectable else ""', 'if self._selectable is None else ""'),
        f"{LISTS}::test_a_look_asks_for_the_writers_of_its_table_only",
    ),
    mutation(
        "writers-of-others",
        "F263",
        "where the API server cannot select, the writers of all tables are taken for the table's",
        o("adapters/kubernetes", "if table_name_of(writer) == table]", "if writer]"),
        f"{LISTS}::test_where_fields_cannot_be_selected_all_are_listed",
    ),
    mutation(
        "memory-is-acted-upon",
        "I11 F264",
        "a plan made of what the watches have brought is performed",
        o(
            "control/loop",
            "        observed = await self._observer.observe(key)\n",
            "        observed = await self._observer.glance(key) or await self._observer.observe(key)\n",
        ),
        f"{MEMORY}::test_nobody_is_fenced_for_what_was_not_heard",
    ),
    mutation(
        "at-rest-for-ever",
        "F264",
        "a table at rest has no live look while the watches tell nothing",
        o("control/loop", "if left > 0 else None", "if key in self._live_at else None"),
        f"{MEMORY}::test_what_was_not_heard_is_found_after_a_few_minutes",
    ),
    mutation(
        "a-whole-look-for-each-event",
        "F264",
        "an event that changes nothing leads to a live look",
        o("control/loop", "if left > 0 else None", "if left > 1e9 else None"),
        f"{MEMORY}::test_a_table_at_rest_costs_nothing",
    ),
    mutation(
        "what-was-deleted-stays",
        "F264",
        "an object whose deletion was lost is remembered for ever",
        o("control/memory", "if self._noted[name].at < began:", "if self._noted[name].at < 0:"),
        f"{MEMORY}::test_what_a_look_does_not_find_is_gone",
        f"{MEMORY}::test_what_was_not_heard_is_found_after_a_few_minutes",
    ),
    mutation(
        "a-look-covers-the-news",
        "F264",
        "an event that came during a look is overwritten by what the look had read before it",
        o("control/memory", "(noted is None or noted.at < began)", "(noted is None or noted.at)"),
        f"{MEMORY}::test_what_was_heard_during_a_look_stands",
    ),
    mutation(
        "a-look-brings-back-what-is-gone",
        "F264",
        "an object that was deleted during a look is remembered as it was before",
        o("control/memory", "if gone < began and (", "if ("),
        f"{MEMORY}::test_what_was_heard_during_a_look_stands",
    ),
    mutation(
        "gone-under-its-name",
        "F264",
        "the deletion of a pod takes its successor of the same name out of memory",
        o("control/memory", "if noted is not None and self._uid(noted.value) == uid:", "if noted is not None:"),
        f"{MEMORY}::test_the_deletion_of_a_predecessor_is_none_of_its_successor",
    ),
    mutation(
        "etcd-names-nobody",
        "F264",
        "a pod that etcd names and no watch has told of is not looked for",
        o(
            "control/observe",
            "if read.facts is None or etcd_uids(read.facts) - {pod.uid for pod in seen.pods}:",
            "if read.facts is None:",
        ),
        f"{MEMORY}::test_a_pod_that_etcd_names_and_nobody_has_heard_of_is_read",
    ),
    mutation(
        "the-first-tables-decide",
        "F265 F14",
        "the evidence of an agent is dropped when the first few of its tables do not need it any more",
        o(
            "control/sibling_tables",
            "    while left and not asked <= found:\n",
            "    if left and not asked <= found:\n",
        ),
        f"{OBSERVE}::test_who_holds_a_dead_agents_pod_is_read_first_and_all_before_it_goes",
    ),
    mutation(
        "unasked-evidence",
        "F290 F14",
        "an agent's pod whose node proves its death loses its evidence before its other tables are asked",
        o("plan/agent/agent_pods", "        if not leaving(pod):\n", "        if not pod.uid:\n"),
        "tests/tiers/unit/plan/test_rules.py::test_an_agents_pod_stays_while_it_is_not_known_who_needs_it",
    ),
    mutation(
        "n-times-n",
        "F265",
        "each look at a table of a dead agent reads the keys of all its other tables",
        o("control/sibling_tables", "while left and not asked <= found:", "while left:"),
        f"{OBSERVE}::test_who_holds_a_dead_agents_pod_is_read_first_and_all_before_it_goes",
    ),
    mutation(
        "a-second-agent-is-everybodys-matter",
        "F623",
        "each wide look at a table of a namespace with two agents reads all its other tables",
        o("control/sibling_tables", "all(used(other) for other in others)", "not others"),
        f"{OBSERVE}::test_a_wide_look_beside_a_second_agent_reads_no_other_table",
    ),
    mutation(
        "nobodys-agent-is-nobodys-matter",
        "F623 F265",
        "no look ends an agent that no table uses any more",
        o("control/sibling_tables", " and all(used(other) for other in others)"),
        f"{OBSERVE}::test_a_wide_look_beside_a_second_agent_reads_no_other_table",
    ),
    mutation(
        "an-ended-agent-is-everybodys-matter-for-good",
        "F623",
        "after one failed agent, each look at its tables reads all HudiTables of the namespace",
        o("control/sibling_tables", "sum(not _kept(pod) for pod in own) <= 1", "len(own) <= 1"),
        f"{OBSERVE}::test_the_object_of_an_ended_agent_costs_nothing",
    ),
    mutation(
        "evidence-of-a-table-that-gives-way",
        "F623 F265",
        "nobody drops the evidence of an agent whose only table gives way to another one of its path",
        o("control/sibling_tables", "and not _kept(pod) for pod in agents)", "and not _kept(pod) for pod in own)"),
        f"{OBSERVE}::test_a_wide_look_beside_a_second_agent_reads_no_other_table",
    ),
    mutation(
        "a-table-that-is-gone-stays-in-the-index",
        "F623",
        "an agent is kept for a HudiTable whose deletion nobody was told of",
        o(
            "control/observe",
            "            self._index.remove(key)  # the event of its deletion was lost\n",
            "            pass\n",
        ),
        f"{OBSERVE}::test_a_table_whose_deletion_was_not_told_leaves_the_index",
    ),
    mutation(
        "who-starts-misses-executors",
        "F623",
        "each look at a driver that waits for its first executors lists those of the namespace",
        o("plan/writers/executors_missing", "age is not None and age >= MISSING_SECONDS / 2", "True"),
        f"{OBSERVE}::test_executors_of_a_driver_that_has_just_started_are_not_missed",
    ),
    mutation(
        "a-status-is-forgotten-before-it-is-written",
        "F625",
        "what waited is dropped although the write of the next status fails",
        o(
            "control/late_statuses",
            "            return True\n        return False\n\n    def written",
            "            return True\n        self._drop(key, action.name)\n        return False\n\n    def written",
        ),
        f"{LATE}::test_a_status_whose_write_fails_is_not_forgotten",
    ),
    mutation(
        "an-edit-takes-the-pod-of-an-attempt",
        "F625 F23",
        "when somebody edits a HudiWriter, the uid of a pod that was to be written is forgotten",
        o("control/late_statuses", "        if changed is obj:\n", "        if True:\n"),
        f"{LATE}::test_the_pod_of_an_attempt_outlives_a_change_of_the_object",
    ),
    mutation(
        "what-fails-keeps-late-statuses",
        "F625",
        "while an action fails at each look, no status that is due is written",
        o(
            "control/executor",
            "                await self._write_late(context)\n            raise\n",
            "                pass\n            raise\n",
        ),
        f"{LATE}::test_what_fails_at_each_look_keeps_no_status_that_is_due",
    ),
    mutation(
        "a-full-cluster-is-never-at-rest",
        "F624",
        "a table is looked at every few seconds while one of its executors waits for a node",
        o("control/loop", ' and pod.phase == "Pending"', ' and pod.phase == "Running"'),
        f"{MISSING}::test_a_full_cluster_costs_no_look_every_few_seconds",
    ),
    mutation(
        "who-cannot-be-read-needs-nothing",
        "I11 F265",
        "a table whose keys cannot be read does not keep the evidence of an agent",
        o("control/sibling_tables", "        if len(known) < len(read):\n            return None\n"),
        f"{OBSERVE}::test_a_table_that_cannot_be_read_keeps_every_pod",
    ),
    mutation(
        "an-end-is-only-told",
        "I11 F266",
        "the end of an attempt is written from what the watches have brought",
        o(
            "control/telling",
            'and _without(old.get("attempts"), _COUNTED) == _without(new.get("attempts"), _COUNTED)',
            "and bool(new)",
        ),
        f"{MEMORY}::test_what_else_a_status_says_is_decided_live",
    ),
    mutation(
        "outcomes-are-only-told",
        "I11 F266",
        "whatever a table's status says is written from what the watches have brought",
        o("control/telling", "        return changed <= _TOLD_OF_TABLES\n", "        return bool(changed)\n"),
        f"{MEMORY}::test_what_else_a_status_says_is_decided_live",
    ),
    mutation(
        "told-of-an-old-object",
        "F266",
        "a status that was refused is written again from the same old object",
        o("control/loop", "        del self._live_at[key]\n"),
        f"{MEMORY}::test_what_is_told_from_an_old_object_is_refused_and_told_by_a_live_look",
    ),
    mutation(
        "a-whole-look-for-each-commit",
        "F266",
        "each report leads to a live look",
        o("control/loop", "if not only_tells(plan.actions, seen.objects):", "if plan.actions:"),
        f"{MEMORY}::test_a_commit_of_a_table_at_rest_is_told_without_a_live_look",
    ),
)

CONFIGURED = (
    mutation(
        "a-look-decides-by-a-configuration-that-it-did-not-read-by",
        "F650",
        "what a look has read by the old configuration is judged by the new one",
        o(
            "control/loop",
            '            raise Conflict("the configuration has changed meanwhile")',
            "            config = self._config",
        ),
        f"{LOOP}::test_a_look_that_read_by_another_configuration_decides_nothing",
    ),
)
