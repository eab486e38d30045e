"""Reported values that go into a status or a path, and writes that the API server refuses."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, a
from tests.campaigns.mutations.in_gateway import _GO, g
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import Edit, mutation

_BOUNDS = "tests/tiers/unit/plan/test_status_bounds.py"
_PATHS = "tests/tiers/unit/adapters/test_names_in_paths.py"
_LEFT = "tests/tiers/hudi/test_left_writes.py::test_what_a_write_leaves_is_rolled_back_while_its_program_runs"
_NODE = "tests/tiers/unit/contract/test_records.py::test_a_node_has_a_name_of_kubernetes"
_LOOP = "tests/tiers/unit/control/test_loop.py"
_ONE = f"{_LOOP}::test_a_refused_write_stops_only_what_depends_on_its_object"
_CONDITIONS = (
    '"HudiTable": {"type": "object", "properties": {\n'
    ' "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},\n'
    ' "conditions": {"type": "array", "maxItems": '
)
_UNMADE = (
    "tests/tiers/unit/plan/writers/test_refused_starts.py"
    "::test_an_attempt_without_a_pod_whose_spec_cannot_be_read_keeps_no_place"
)
_SCHEDULE = (
    "tests/tiers/unit/plan/writers/test_schedules.py"
    "::test_a_schedule_whose_spec_cannot_be_read_goes_on_later_and_costs_nothing"
)
_RESTART = "tests/tiers/unit/plan/test_rules.py::test_a_restart_begins_a_run_whatever_it_waits_for"
_AWAITED = "tests/tiers/unit/plan/writers/test_awaited.py"
_CONTAINED = "tests/tiers/unit/plan/writers/test_contained.py"
_CLASSIFY = "tests/tiers/unit/model/test_classify.py"
_AGENTS = "tests/tiers/unit/plan/agent/test_agents.py"
_CHANGE = "tests/tiers/unit/plan/writers/test_ending_for_change.py"

REFUSED_WRITES = (
    mutation(
        "a-program-keeps-what-it-was-refused",
        "F477",
        "what a program was refused stays pending for as long as it runs",
        a("writer/attempt", "        self._session.give_up_left_writes(self._spark)\n", ""),
        _LEFT,
    ),
    mutation(
        "given-up-while-a-task-runs",
        "F477 F4",
        "the instant of a write that was cancelled is given up while a task of it may still write",
        j("LeftWrites", "!hasTasksBefore(write.nextJob) && ", ""),
        _LEFT,
    ),
    mutation(
        "one-writer-of-many",
        "F504",
        "a table whose settings contradict mode SingleWriter is refused at apply and launched",
        o("api/concurrency", "if mode == Concurrency.SINGLE_WRITER else", "if not mode else"),
        "tests/tiers/unit/api/test_spec.py::test_single_writer_means_one",
    ),
    mutation(
        "one-name-for-two-items",
        "F505",
        "a list that names one Secret twice is refused at apply and launched",
        o("api/fields", 'if schema.get(DISTINCT) in ("set", "map"):', 'if schema.get(DISTINCT) == "set":'),
        "tests/tiers/unit/api/test_spec.py::test_what_names_an_item_stands_once",
    ),
    mutation(
        "less-than-no-cpu",
        "F517",
        "a quantity below zero is launched",
        o("api/fields", 'elif kind in ("integer", "quantity"):', 'elif kind == "integer":'),
        "tests/tiers/unit/api/test_hostile_specs.py::test_an_attack",
    ),
    mutation(
        "a-volume-without-a-name",
        "F506",
        "a volume that names no ConfigMap ends every action of its table",
        o(
            "control/begun",
            'if name := _object(source, "configMap").get("name"):',
            'if "configMap" in source and (name := source["configMap"]["name"]):',
        ),
        "tests/tiers/unit/control/test_loop.py::test_a_volume_that_names_no_config_map_stops_nothing",
    ),
    mutation(
        "an-unread-attempt-stops-its-table",
        "F516",
        "an attempt of which nobody can tell what is made for it ends every action of its table",
        o(
            "control/executor",
            "unread[attempt] = NOTHING, error\n",
            "unread[attempt] = NOTHING, error\n                raise\n",
        ),
        f"{_LOOP}::test_an_attempt_that_cannot_be_read_stops_no_other",
    ),
    mutation(
        "an-unread-attempt-is-begun",
        "F516",
        "an attempt of which nobody can tell what is made for it is admitted",
        o(
            "control/executor",
            'self._refusals.refused(context.key, attempt, NOTHING.digest, Refused(text, reason="Invalid"))',
            "pass",
        ),
        f"{_LOOP}::test_an_attempt_that_cannot_be_read_stops_no_other",
    ),
    mutation(
        "amounts-are-any-value",
        "F516",
        "a podTemplate with `limits: null` is launched, and its writer has no status",
        o("api/pod_template", "if not isinstance(resources.get(field, {}), Mapping):", "if resources is None:"),
        "tests/tiers/unit/api/test_pod_template.py::test_what_is_not_the_users_is_refused_at_launch",
    ),
    mutation(
        "one-defect-stops-every-writer",
        "F515",
        "a writer of which nobody can tell whether it may start keeps the status and the start of all others",
        o("plan/writers/admission", "    except Exception as error:\n", "    except OSError as error:\n"),
        f"{_CONTAINED}::test_a_defect_stops_one_writer",
    ),
    mutation(
        "a-start-that-cannot-be-planned-keeps-its-place",
        "F515",
        "a writer whose pod cannot be made takes a place of maxWriters for ever",
        o(
            "plan/writers/admission",
            "elif problem := planned(writer, start := _start(view, queued)):",
            "elif (problem := planned(writer, start := _start(view, queued))) and not start.number:",
        ),
        f"{_CONTAINED}::test_a_defect_stops_one_writer",
    ),
    mutation(
        "nobody-says-why-a-writer-stands-still",
        "F515",
        "a writer whose status cannot be planned has the one of before",
        o(
            "plan/table",
            "    if not step.failed:\n        return step\n",
            "    if not step.late:\n        return step\n",
        ),
        f"{_CONTAINED}::test_a_defect_stops_one_writer",
        f"{_CONTAINED}::test_a_running_attempt_stays_in_a_status_that_cannot_be_planned",
    ),
    mutation(
        "a-defect-of-the-reader-stops-the-table",
        "F515",
        "a HudiWriter that the reader does not expect stops its table",
        o(
            "model/objects",
            "    except Exception as error:\n        return ReadWriter(",
            "    except OSError as error:\n        return ReadWriter(",
        ),
        f"{_CONTAINED}::test_a_defect_of_the_reader_is_a_spec_that_cannot_be_read",
    ),
    mutation(
        "a-table-that-the-reader-does-not-expect",
        "F515",
        "nobody is fenced in a table whose spec the reader does not expect",
        o(
            "api/tolerant",
            "    except Exception as error:\n        return _for_settling(",
            "    except OSError as error:\n        return _for_settling(",
        ),
        f"{_CONTAINED}::test_a_defect_of_the_reader_keeps_nobody_from_being_fenced",
    ),
    mutation(
        "an-insert-that-says-upsert",
        "F496 I13",
        "an upsert that Hudi carries out as an insert keeps two rows of one key",
        j("WriteOptions", "(overwrites || isInsertAfterAll(props))", "overwrites"),
        t("WriteOptionsTest.aProgramWritesNoKeyTwice"),
    ),
    mutation(
        "what-was-left-was-not-given-up",
        "F495 I5",
        "a program whose writes were given up for it leaves by itself, although an executor was lost",
        j("Session", "return instants.gaveUp();", "return false;"),
        _LEFT,
    ),
    mutation(
        "nobody-is-told-what-is-committed",
        "F498 availability",
        "a function whose input is gone ends its run, and nothing says that its batch is committed",
        a("read/sources", '    if number > committed:\n        return ""\n', '    return ""\n'),
        f"{RUNTIME}/read/test_batches_of_functions.py::test_a_function_whose_input_is_gone_is_told_what_is_committed",
    ),
    mutation(
        "a-program-inserts-what-is-there",
        "F478 I13",
        "a program inserts keys that the table has, and is not told",
        j("WriteOptions", "if (keysOnce && props", "if (false && props"),
        t("WriteOptionsTest.aProgramWritesNoKeyTwice"),
    ),
    mutation(
        "every-program-inserts",
        "F478 I13",
        "every program may insert keys that the table has, whatever its HudiWriter says",
        j(
            "WriteOptions",
            "return new WriteOptions(rendered, hasKeysOnce(told));",
            "return new WriteOptions(rendered, false);",
        ),
        t("WriteOptionsTest.codeOfAUserWritesNoKeyTwiceUnlessItMay"),
    ),
    mutation(
        "a-program-overwrites-with-a-key-twice",
        "F478 I13",
        "an overwrite of a program keeps both rows of a key",
        o("manifests/hudi_conf", '        options["hoodie.combine.before.insert"] = "true"\n', "        pass\n"),
        "tests/tiers/unit/manifests/test_manifests.py::test_code_of_a_user_writes_no_key_twice",
    ),
    mutation(
        "a-program-that-inserts-is-not-shown",
        "F478",
        "a program may write keys twice, and the table says that nobody allows it",
        o(
            "plan/writers/duplicates",
            "(w.spec.application is not None or w.spec.operation in _INSERTS)",
            "w.spec.operation in _INSERTS",
        ),
        "tests/tiers/unit/plan/test_table_plan.py::test_one_writer_that_allows_duplicates_voids_the_promise",
    ),
    mutation(
        "sixteen-conditions",
        "F428",
        "a table with a callback, a catalog and a bucket has a status that the API server refuses",
        Edit("operator/hudi_operator/model/statuses.json", f"{_CONDITIONS}32,", f"{_CONDITIONS}16,"),
        f"{_BOUNDS}::test_a_table_with_everything_on_has_a_status_that_is_written",
        f"{_BOUNDS}::test_the_bounds_are_those_of_the_crd",
        f"{_BOUNDS}::test_the_bounds_are_made_of_the_crds",
    ),
    mutation(
        "a-node-is-any-text",
        "F429",
        "a driver chooses what the operator asks the API server for",
        o("hudi_contract/shape", "not value or is_object_name(value)", "True"),
        _NODE,
    ),
    mutation(
        "a-name-is-many-segments",
        "F429",
        "a name with a slash is another path of the API server",
        o("adapters/kubernetes", 'return quote(name, safe="")', "return quote(name)"),
        f"{_PATHS}::test_a_name_is_one_segment_of_the_path",
    ),
    mutation(
        "two-dots-are-a-name",
        "F429",
        "a name with which a path goes up",
        o("adapters/kubernetes", 'if name in ("", ".", ".."):', "if name is None:"),
        f"{_PATHS}::test_what_is_no_name_is_asked_for_by_nobody",
    ),
    mutation(
        "a-pod-is-on-any-node",
        "F429",
        "a pod registers on a node on which it does not run",
        g("rules", 's.node != "" && value.Node != s.node', 's.node != "" && value.Node == ""'),
        _GO,
    ),
    mutation(
        "a-name-makes-a-line-of-the-log",
        "F429",
        "a name with a newline forges records of the log",
        o("observability", '"\\n    ".join(', '"\\n".join('),
        f"{_PATHS}::test_a_name_does_not_make_a_line_of_the_log",
    ),
    mutation(
        "a-refused-write-ends-the-plan",
        "F430",
        "a webhook that refuses an old pod's finalizer keeps a dead writer's lock",
        o(
            "control/executor",
            "                context.refused.append(str(error))\n                context.waiting |=",
            "                raise\n                context.waiting |=",
        ),
        _ONE,
    ),
    mutation(
        "what-is-refused-holds-nothing-back",
        "F430 F200",
        "the ConfigMap of a pod goes although its pod stays, and the HudiTable with both",
        o("control/executor", "not context.writes.withhold(action, last=context.observed.table is None)", "True"),
        _ONE,
    ),
    mutation(
        "an-attempt-starts-that-is-in-no-status",
        "F430 F23",
        "the pod of an attempt is made although its number was refused",
        o("control/executor", "context.waiting |= context.writes.refuse(", "context.writes.refuse("),
        _ONE,
    ),
    mutation(
        "an-agent-has-a-table-that-does-not-name-it",
        "F585",
        "two agents have one table after the status of its HudiTable was refused",
        o(
            "control/refused_writes",
            'self._agent_untold = action.status.get("agent") != seen.get("agent")',
            "self._agent_untold = bool(seen and not seen)",
        ),
        f"{_LOOP}::test_no_agent_gets_a_table_whose_status_cannot_name_it",
    ),
    mutation(
        "an-agent-has-a-table-without-a-status",
        "F585",
        "two agents have one table whose status could not be made",
        o("plan/table", 'if own.failed and view.status.get("agent") != view.agent else', "if not own else"),
        f"{_AGENTS}::test_no_agent_gets_a_table_whose_status_cannot_be_made",
    ),
    mutation(
        "a-former-agent-keeps-the-table",
        "F585",
        "an agent that had the table of an earlier HudiTable keeps it",
        o("plan/agent/agents", "(*stated, *etcd.elsewhere)", "stated"),
        f"{_AGENTS}::test_a_table_is_withdrawn_from_every_other_agent",
    ),
    mutation(
        "a-deleted-table-stays-with-its-former-agent",
        "F585",
        "an agent that had the table before its spec was changed keeps it after the deletion",
        o("plan/deletion", "for name in view.etcd.elsewhere)", 'for name in view.etcd.elsewhere if name == "")'),
        "tests/tiers/unit/plan/test_deletion.py::test_an_agent_that_had_the_table_before_is_told_to_leave",
    ),
    mutation(
        "nobody-asks-for-former-agents",
        "F585",
        "an agent that has the table and should not is not found",
        o("adapters/etcd", "for name in others if name in found)", 'for name in others if name == "")'),
        "tests/tiers/component/operator/test_etcd_adapter.py::test_a_read_tells_which_other_agents_have_the_table",
    ),
    mutation(
        "who-cannot-report-does-not-pause",
        "F584",
        "an agent that may not report tries each second",
        a(
            "agent/assignment",
            "        except Exception as error:  # what it met first is printed, and the pause is set (F584)",
            "        except NotYet as error:",
        ),
        "tests/tiers/unit/runtime/agent/test_assignment.py::test_who_may_not_even_report_tries_ever_later_and_says_so",
    ),
    mutation(
        "a-refusal-delays-settling",
        "F430",
        "a lock stays for the back-off of a refused write that has nothing to do with it",
        o("control/loop", "again = min(again, max(1.0, error.delay))", "again = max(again, error.delay)"),
        f"{_LOOP}::test_what_is_refused_delays_nothing_else",
    ),
    mutation(
        "a-failed-run-begins-again",
        "F433",
        "a run that has failed begins again when its spec could not be read for a while",
        o("plan/writers/writer_status", 'ended = conditions.is_true(old, "Finished")', "ended = False"),
        "tests/tiers/unit/plan/test_rules.py::test_a_failed_run_stays_so_while_its_spec_cannot_be_read",
    ),
    mutation(
        "a-failed-run-begins-again-with-its-schedule",
        "F460",
        "a run that has failed goes on when its schedule was wrong for a while",
        o("plan/writers/writer_status", "    if decision.kind in _STARTS_NOTHING:\n", "    if spec is None:\n"),
        "tests/tiers/unit/plan/test_rules.py::test_a_run_that_has_failed_stays_so_while_its_schedule_is_wrong",
    ),
    mutation(
        "a-restart-that-waits-is-none",
        "F463",
        "a restart that has to wait goes on with the failed run",
        o("plan/writers/writer_status", "({Kind.STALLED, Kind.WAIT, Kind.SUSPENDED})", "({Kind.STALLED})"),
        _RESTART,
    ),
    mutation(
        "a-wait-without-an-event-is-at-rest",
        "availability F463",
        "what a writer waits for comes without an event, and is seen minutes later",
        o("plan/writers/awaited", 'return found.get("reason") in EVENTS and not going_on', "return not going_on"),
        f"{_AWAITED}::test_what_does_not_come_as_an_event_is_looked_for",
        f"{_AWAITED}::test_every_writer_of_the_table_has_to_rest",
    ),
    mutation(
        "an-attempt-whose-spec-cannot-be-read-is-at-rest",
        "availability F433",
        "the end of an attempt is seen minutes later while nobody can read its HudiWriter",
        o("plan/writers/awaited", "in EVENTS and not going_on", "in EVENTS"),
        f"{_AWAITED}::test_what_does_not_come_as_an_event_is_looked_for",
    ),
    mutation(
        "waiting-is-polled",
        "F262",
        "a table with a writer that waits for a place is looked at every 15 s",
        o("control/loop", "calm = awaited.comes_as_event(status)", "calm = False"),
        f"{_AWAITED}::test_a_writer_that_waits_for_a_place_is_not_looked_at_until_it_is_free",
    ),
    mutation(
        "a-retry-is-seen-by-chance",
        "availability",
        "an attempt starts minutes after its time",
        o(
            "control/loop",
            'due = [status["nextRetryTime"]] if status.get("nextRetryTime") else []',
            "due = list[Any]()",
        ),
        f"{_AWAITED}::test_a_retry_that_is_far_away_is_waited_for",
    ),
    mutation(
        "a-tick-that-has-passed-is-looked-for",
        "availability F460",
        "a table is looked at twice a second while the spec of a scheduled writer cannot be read",
        o(
            "plan/writers/writer_status",
            '"schedule", "lastScheduleTime")\n"""Kept as they are while the spec',
            '"schedule", "lastScheduleTime", "nextScheduleTime")\n"""Kept as they are while the spec',
        ),
        _SCHEDULE,
    ),
    mutation(
        "a-wrong-schedule-forgets-the-former-one",
        "availability F460",
        "ticks that were missed while a schedule was wrong are never made up for",
        o("plan/writers/writer_status", "_OF_THE_SCHEDULE if schedules.problem(spec) else ()", "()"),
        _SCHEDULE,
    ),
    mutation(
        "an-attempt-that-is-never-made-keeps-its-place",
        "availability F456",
        "an attempt without a pod whose spec cannot be read keeps a place of maxWriters for ever",
        o(
            "plan/writers/attempts",
            "    if not startable or stopping(view, writer) or",
            "    if not startable and not stopping(view, writer):\n"
            "        return Progress(tuple(entries))\n"
            "    if stopping(view, writer) or",
        ),
        _UNMADE,
    ),
    mutation(
        "an-unread-attempt-ends-before-its-admission",
        "F456 F23",
        "an attempt whose spec cannot be read ends although a pod of it may still register",
        o(
            "plan/writers/attempts",
            "overdue:\n        if attempt.admitted:",
            "overdue:\n        if attempt.admitted and startable:",
        ),
        _UNMADE,
    ),
    mutation(
        "a-pod-that-nobody-remembers",
        "F459 F23",
        "the pod of an attempt is made again under its number when its record is collected",
        o("plan/fencing/collection", " and known[inc].attempt not in going_on", ""),
        "tests/tiers/unit/plan/fencing/test_collection.py"
        "::test_a_record_stays_until_the_end_of_its_attempt_is_in_status",
    ),
    mutation(
        "each-look-logs-a-refusal",
        "availability F461",
        "a refused write is a record of the log each second",
        o("control/repeated", "        if problem in self._logged:\n            return False\n", ""),
        f"{_LOOP}::test_what_is_refused_at_each_look_is_logged_once_a_minute",
        f"{_LOOP}::test_what_is_refused_delays_nothing_else",
    ),
    mutation(
        "a-refusal-is-logged-once",
        "availability F461",
        "a write that is refused for days is in nobody's log any more",
        o("control/repeated", "AGAIN_SECONDS = 60.0", "AGAIN_SECONDS = 1e9"),
        f"{_LOOP}::test_what_is_refused_at_each_look_is_logged_once_a_minute",
    ),
    mutation(
        "one-refusal-hides-another",
        "availability F461",
        "a refused write of another object is not logged",
        o("control/executor", "object_of(action) or type(action).__name__", "type(action).__name__"),
        f"{_LOOP}::test_what_is_refused_at_each_look_is_logged_once_a_minute",
    ),
    mutation(
        "a-blank-message-ends-nothing",
        "availability F462",
        "a driver whose last message is blank keeps its HudiWriter as it is for ever",
        o("model/classify", 'told.message.strip() if told is not None else ""', 'told.message if told else ""'),
        f"{_CLASSIFY}::test_a_blank_message_is_none",
    ),
    mutation(
        "a-deep-message-ends-nothing",
        "availability F462",
        "a driver with brackets as its last message keeps its HudiWriter as it is for ever",
        o("model/classify", "(ValueError, TypeError, RecursionError)", "(ValueError, TypeError)"),
        f"{_CLASSIFY}::test_a_message_that_is_nested_too_deeply_is_a_text",
    ),
    mutation(
        "only-settling-is-in-a-hurry",
        "F430",
        "a silent writer is found after the back-off of a refused write that has nothing to do with it",
        o("control/loop", "max(plan.requeue_seconds, 1.0 if urgent else 5.0)", "1.0 if urgent else 300.0"),
        f"{_LOOP}::test_what_is_refused_delays_nothing_else",
    ),
    mutation(
        "what-was-done-beside-a-refusal-is-not-counted",
        "F430",
        "metrics and log know nothing of a plan in which one write was refused",
        o("control/executor", "            error.done = context.done\n", "            error.done = ()\n"),
        f"{_LOOP}::test_what_is_refused_delays_nothing_else",
        f"{_LOOP}::test_what_was_done_before_a_failure_is_known",
    ),
    mutation(
        "a-config-map-that-is-not-held-keeps-its-pod",
        "availability F430",
        "a driver is fenced instead of stopped because the finalizer of its ConfigMap was refused",
        o(
            "control/refused_writes",
            "        if isinstance(action, act.HoldConfigMap):\n",
            "        if action is None:\n",
        ),
        f"{_LOOP}::test_a_config_map_that_is_not_held_stops_no_pod",
    ),
    mutation(
        "a-status-is-written-as-it-was-told",
        "F431",
        "a pod's word makes a status that the API server refuses for ever",
        o("model/status_bounds", "    found = _fit(status, OF_KIND[kind])\n", "    found = status\n"),
        f"{_BOUNDS}::test_whatever_pods_and_etcd_tell_the_statuses_are_held",
        f"{_BOUNDS}::test_a_status_that_fits_is_not_changed",
    ),
    mutation(
        "what-is-no-time-is-an-instant",
        "F431",
        "an instant of any name pushes the real ones out of an attempt's list",
        o("plan/writers/attempts", "if conditions.is_hudi_time(one)", "if one"),
        f"{_BOUNDS}::test_sums_and_instants_of_an_attempt_stay_what_they_are",
    ),
    mutation(
        "attempts-of-an-unread-spec-are-nobodys",
        "F433",
        "a run whose spec the operator cannot read any more keeps a change waiting for ever",
        o(
            "plan/core/view",
            "    known = spec or known_writer(obj)\n    if known is None",
            "    known = spec\n    if known is None",
        ),
        f"{_CHANGE}::test_a_run_whose_spec_cannot_be_read_any_more_is_ended_when_its_time_is_over",
        f"{_CHANGE}::test_a_run_whose_spec_cannot_be_read_is_stopped_when_a_person_says_so",
    ),
    mutation(
        "a-deleted-writer-with-an-unread-spec-goes-at-once",
        "F433",
        "a HudiWriter is gone while its attempt runs",
        o("plan/deletion", "if writer.spec is None and not writer.attempts:", "if writer.spec is None:"),
        f"{_CHANGE}::test_a_run_whose_spec_cannot_be_read_is_stopped_when_a_person_says_so",
    ),
)
