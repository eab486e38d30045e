"""Mutations of the lock module: the transactions, the session, the storage wrapper and
what Hudi calls.
"""

from __future__ import annotations

from tests.campaigns.mutations.mutation import JAVA_SOURCES, JAVA_TESTS, Edit, java_file, mutation


def j(file: str, old: str, new: str = "") -> Edit:
    return Edit(java_file(JAVA_SOURCES, file), old, new)


def t(name: str) -> str:
    """``AcquireTest.onlyOneOwnsIt`` as the id of a test."""
    file, _, method = name.partition(".")
    return f"{java_file(JAVA_TESTS, file)}::{method}"


GATE_COMPARE = "            .modRevision(keys.gate(), gateRevision) // the gate that I read and that admits me (F8)\n"
ALIVE_COMPARE = (
    "                // only my last heartbeat counts (F16)\n"
    "                .modRevision(keys.alive(me.inc), liveness.aliveRevision())\n"
)

TRANSACTIONS = (
    mutation(
        "pauses-between-connections-grow",
        "F342",
        "a driver whose gateway was away for a minute waits for another one, without a heartbeat",
        j("Connection", "            channelAt(at).resetConnectBackoff();\n"),
        t("ReconnectTest.anEndpointThatIsAwayIsTriedAgainAndAgain"),
    ),
    mutation(
        "acquire-a-lock-that-is-taken",
        "I1",
        "acquire does not compare that nobody has the lock",
        j("LockProtocol", "            .absent(keys.lock()) // I1\n"),
        t("AcquireTest.aLockThatIsTakenOnTheWayStaysWhereItIs"),
    ),
    mutation(
        "lock-goes-with-the-lease",
        "I1 F8",
        "the lock hangs on the lease of its owner, whatever the mode",
        j("Acquisition", "gate.isLeaseOnly() ? liveness.lease() : 0", "liveness.lease()"),
        t("AcquireTest.theLockHasNoLeaseAndNamesItsOwner"),
    ),
    mutation(
        "acquire-although-fenced",
        "I2",
        "acquire does not compare the fence",
        j("LockProtocol", "                .absent(keys.fence(me.inc)) // I2\n", ""),
        t("AcquireTest.fencedOnTheWayNeverAcquires"),
    ),
    mutation(
        "acquire-with-any-heartbeat",
        "F16",
        "acquire asks for a heartbeat, not for the one that was put last: a lost request may be executed later",
        j("LockProtocol", ALIVE_COMPARE, "                .exists(keys.alive(me.inc))\n"),
        t("AcquireTest.anAcquireThatArrivesAfterGivingUpNeverOwns"),
    ),
    mutation(
        "resolve-by-reading-back",
        "F16",
        "an acquire without an answer is looked up and then forgotten, without making it impossible",
        (
            j(
                "LockProtocol",
                (
                    ".otherwise(Txn.Op.put(keys.alive(me.inc), liveness.nextValue(), liveness.lease()));\n"
                    "        ProtocolLog"
                ),
                ".otherwise(Txn.Op.get(keys.lock()));\n        ProtocolLog",
            ),
            j(
                "LockProtocol",
                "            line.write(r.revision, false);\n            liveness.alivePut(r.revision);\n",
                "            line.write(r.revision, false);\n",
            ),
        ),
        t("AcquireTest.anAcquireThatArrivesAfterGivingUpNeverOwns"),
    ),
    mutation(
        "lost-answer-is-a-refusal",
        "F16 F15",
        "an acquire without an answer counts as not executed",
        j("LockProtocol", "Acquired resolved = resolve(liveness, lockValue, nonce);", "Acquired resolved = null;"),
        t("AcquireTest.anAcquireThatCannotBeResolvedForbidsACleanExit"),
        t("AcquireTest.aLostAnswerOfAcquireEndsWithTheLock"),
    ),
    mutation(
        "acquire-under-an-old-gate",
        "F8",
        "acquire does not compare the gate that was read",
        j("LockProtocol", GATE_COMPARE),
        t("AcquireTest.aGateThatChangesOnTheWayIsReadAgain"),
    ),
    mutation(
        "register-although-fenced",
        "I2",
        "registration does not compare the fence",
        j(
            "Registration",
            "                .absent(keys.fence(me.inc)) // I2\n                .then(Txn.Op.put(keys.writer"
            "(me.inc), me.registration(), 0))\n                .then(Txn.Op.put(keys.alive",
            (
                "                .then(Txn.Op.put(keys.writer(me.inc), me.registration(), 0))\n"
                "                .then(Txn.Op.put(keys.alive"
            ),
        ),
        t("RegistrationTest.aFencedIncarnationCannotRegister"),
    ),
    mutation(
        "register-without-admission",
        "F23",
        "registration does not compare the admission",
        j("Registration", "                .exists(keys.admit(me.attempt))\n"),
        t("RegistrationTest.refusedWithoutAdmission"),
        t("RegistrationTest.refusedAfterTheFenceTookTheAdmissionAway"),
    ),
    mutation(
        "register-without-lease",
        "F23",
        "the first heartbeat has no lease: a registration that arrives late stands for ever",
        j(
            "Registration",
            "alive, lease))\n                .otherwise(Txn.Op.get(keys.fence",
            "alive, 0))\n                .otherwise(Txn.Op.get(keys.fence",
        ),
        t("RegistrationTest.aRegistrationThatArrivesLateIsRejectedWhole"),
    ),
    mutation(
        "heartbeat-although-fenced",
        "I2",
        "a lost heartbeat is put again without comparing the fence",
        j(
            "Registration",
            "        Txn txn = Txn.when()\n"
            "                .absent(keys.fence(me.inc)) // I2\n"
            "                .exists(keys.writer(me.inc))\n"
            "                .then(Txn.Op.put(keys.alive(me.inc), alive, lease));\n",
            (
                "        Txn txn = Txn.when().exists(keys.writer(me.inc)).then(Txn.Op.put(keys.alive(me.inc), alive, "
                "lease));\n"
            ),
        ),
        t("RegistrationTest.aLostLeaseIsNotReplacedAfterTheFence"),
    ),
    mutation(
        "fenced-process-goes-on",
        "I2",
        "a fenced process does not halt",
        j("Liveness", "        ends(EXIT_FENCED, why);\n"),
        t("RegistrationTest.theFenceHaltsTheProcess"),
    ),
    mutation(
        "fenced-waits-for-the-lock",
        "I2",
        "a fenced incarnation is not told so: it waits until its time is over",
        j(
            "Acquisition",
            "if (view.fence != null || liveness.state() == Liveness.State.FENCED) { // I2",
            "if (liveness.state() == Liveness.State.CLOSED) { // I2",
        ),
        t("AcquireTest.fencedNeverAcquires"),
    ),
    mutation(
        "an-etcd-that-forgot-is-written-to",
        "I1 I2 I11",
        (
            "a process goes on with an etcd that was set back to an older state, which may have forgotten a fence or "
            "a lock"
        ),
        j("Connection", "} else if (header.getRevision() < before) {", "} else if (header.getRevision() < 0) {"),
        t("EtcdFaultsTest.anEtcdThatForgotIsNotWrittenToAndItsWritersEnd"),
    ),
    mutation(
        "two-releases-of-hudi-write",
        "F8",
        "a session takes the lock of a table that was pinned to another release of Hudi after it had begun",
        j("Gate", "    requireHudi(gate.value, hudiVersion());\n"),
        t("RegistrationTest.aSessionDoesNotOutliveThePinOfItsTable"),
    ),
    mutation(
        "silent-etcd-is-waited-for",
        "availability",
        "a process that does not hear of etcd goes on for ever",
        j("Liveness", "if (ended != null || !silentTooLong()) {", "if (ended == null || !silentTooLong()) {"),
        t("RegistrationTest.silenceHaltsTheProcess"),
    ),
    mutation(
        "lost-lease-ends-the-session",
        "availability",
        "a lost lease is never replaced: each long pause costs the attempt",
        j(
            "Liveness",
            "            renewLease();\n        }\n        Txn.Result self",
            "        }\n        Txn.Result self",
        ),
        t("RegistrationTest.aLostLeaseIsReplacedAndTheSessionGoesOn"),
    ),
    mutation(
        "release-whoever-has-the-lock",
        "I1",
        "release deletes the lock without comparing its token",
        j(
            "LockProtocol",
            "Txn.when().createRevision(keys.lock(), token).then(Txn.Op.delete(keys.lock()))",
            "Txn.when().then(Txn.Op.delete(keys.lock()))",
        ),
        t("MutationTokenCompareTest.release"),
        t("AcquireTest.aLateReleaseDoesNotTouchTheNextOwner"),
    ),
    mutation(
        "release-is-not-repeated",
        "I1",
        "a release without an answer counts as done",
        j(
            "LockProtocol",
            'Txn.Result r = definite.of("release", txn);\n',
            (
                "Txn.Result r;\n"
                "    try {\n"
                "      r = etcd.txn(txn);\n"
                "    } catch (EtcdException e) {\n"
                "      return;\n"
                "    }\n"
            ),
        ),
        t("AcquireTest.aReleaseWithoutAnswerKeepsTheSessionUnresolved"),
    ),
    mutation(
        "clean-exit-with-the-lock",
        "I1 F15",
        "a process leaves although it holds the lock",
        j(
            "Session",
            "liveness.state() == Liveness.State.FENCED || !turn.tryAcquire()",
            "liveness.state() == Liveness.State.FENCED",
        ),
        t("RegistrationTest.cleanExitRemovesTheRegistration"),
    ),
    mutation(
        "clean-exit-taken-for-a-fence",
        "availability",
        (
            "a heartbeat that comes in the middle of a clean exit misses the registration and halts the process: a "
            "success is told as Fenced"
        ),
        j("Session", "      liveness.leaves();\n"),
        t("RegistrationTest.aHeartbeatDuringTheCleanExitDoesNotMissTheRegistration"),
    ),
    mutation(
        "clean-exit-with-an-unknown-acquire",
        "F15",
        "a process leaves although it may own the lock without knowing it",
        j(
            "Session",
            "if (protocol.acquireUnknown() || !instantProtocol.pendingInstants().isEmpty()",
            "if (!instantProtocol.pendingInstants().isEmpty()",
        ),
        t("AcquireTest.anAcquireThatCannotBeResolvedForbidsACleanExit"),
    ),
    mutation(
        "clean-exit-with-a-pending-instant",
        "F12 I7",
        "a process leaves although an instant of its own is pending: nobody settles it",
        j("Session", " || !instantProtocol.pendingInstants().isEmpty()"),
        t("RegistrationTest.aPendingInstantKeepsTheRegistration"),
    ),
    mutation(
        "record-without-the-lock",
        "I1 F12",
        "an instant is recorded without comparing the token",
        j(
            "InstantProtocol",
            "Txn.when().createRevision(keys.lock(), token).absent(keys.instant(time)); // I1",
            "Txn.when().absent(keys.instant(time));",
        ),
        t("MutationTokenCompareTest.recordInstant"),
    ),
    mutation(
        "record-over-a-record",
        "I7",
        "an instant is recorded although somebody else has recorded it",
        j(
            "InstantProtocol",
            "createRevision(keys.lock(), token).absent(keys.instant(time)); // I1",
            "createRevision(keys.lock(), token);",
        ),
        t("TimelineGuardTest.anExistingRecordOfSomebodyElseIsNotOverwritten"),
    ),
    mutation(
        "file-before-its-record",
        "F12",
        "the requested file is created without a record of its owner",
        j(
            "InstantProtocol",
            "        txn.then(Txn.Op.put(\n"
            "                keys.instant(time),\n"
            "                me.instantRecord(action, InstantState.PENDING).toString(),\n"
            "                0));\n",
        ),
        t("TimelineGuardTest.theRecordAndTheClockComeBeforeTheFile"),
        t("TimelineGuardTest.aCommitFromTheFirstFileToTheLast"),
    ),
    mutation(
        "a-refused-time-is-silence-of-etcd",
        "F382",
        "a host whose clock is ahead is told that etcd does not answer",
        j(
            "GrpcEtcdClient",
            "return text.contains(CLOCK_RULE) ? EtcdException.Outcome.CLOCK_AHEAD : EtcdException.Outcome.REFUSED;",
            "return EtcdException.Outcome.REFUSED;",
        ),
        t("ClockAheadTest.theGatewaysRefusalIsDefinite"),
    ),
    mutation(
        "a-refused-time-is-tried-for-ever",
        "F382",
        "the refusal of a time is an unknown outcome: the lock is held, and the request repeated",
        j(
            "GrpcEtcdClient",
            "return text.contains(CLOCK_RULE) ? EtcdException.Outcome.CLOCK_AHEAD : EtcdException.Outcome.REFUSED;",
            "return text.contains(CLOCK_RULE) ? EtcdException.Outcome.UNKNOWN : EtcdException.Outcome.REFUSED;",
        ),
        t("ClockAheadTest.theGatewaysRefusalIsDefinite"),
    ),
    mutation(
        "a-refused-time-is-no-refusal",
        "F382",
        "the storage wrapper throws another exception than for a refusal, and names no host",
        j("InstantProtocol", "definite.promising(name, txn)", "definite.of(name, txn)"),
        t("ClockAheadTest.anInstantIsNotBegun"),
    ),
    mutation(
        "a-wrong-clock-uses-up-retries",
        "F382",
        "an attempt whose host's clock is ahead counts against the limit of retries",
        Edit(
            "spark-images/hudi_runtime/process/errors.py",
            "    ErrorCode.CLOCK_AHEAD: FailureClass.CLOCK_SKEW,\n",
            "",
        ),
        "tests/tiers/unit/runtime/process/test_errors.py::test_classes",
        "tests/tiers/unit/runtime/process/test_errors.py::test_a_program_is_not_to_blame_for_its_hosts_clock",
    ),
    mutation(
        "a-program-is-to-blame-for-its-hosts-clock",
        "F382",
        "a program ends as failed when its host's clock is wrong",
        Edit("spark-images/hudi_runtime/process/errors.py", "        FailureClass.CLOCK_SKEW,\n", ""),
        "tests/tiers/unit/runtime/process/test_errors.py::test_a_program_is_not_to_blame_for_its_hosts_clock",
    ),
    mutation(
        "a-gateways-clock-ends-drivers",
        "F413",
        "a token that one gateway does not accept is a right that is missing: nobody asks the next gateway",
        j(
            "GrpcEtcdClient",
            "next endpoint's right (F413)\n                return EtcdException.Outcome.UNKNOWN;",
            "next endpoint's right (F413)\n                return EtcdException.Outcome.DENIED;",
        ),
        t("UnauthenticatedTest.theOtherGatewayIsAsked"),
        t("UnauthenticatedTest.whenBothRefuseItIsRepeatedUntilTheLimit"),
    ),
    mutation(
        "a-missing-right-is-asked-for-again",
        "F413",
        "a request that is denied is repeated at each gateway until the limit of silence",
        j(
            "GrpcEtcdClient",
            "case PERMISSION_DENIED:\n                return EtcdException.Outcome.DENIED;",
            "case PERMISSION_DENIED:\n                return EtcdException.Outcome.UNKNOWN;",
        ),
        t("UnauthenticatedTest.aDeniedRequestIsNotRepeated"),
    ),
    mutation(
        "a-refused-time-is-not-remembered",
        "F414",
        "nobody is told that the times of this process are refused",
        j("WallClock", "        refused = why;\n"),
        t("ClockAheadTest.aFinalRefusalIsTold"),
        t("ClockSetBackTest.theLockIsNotTaken"),
    ),
    mutation(
        "times-of-the-future-wait-under-the-lock",
        "F415",
        "the lock is asked for although Hudi will make no time for an hour",
        j("Acquisition", "        WallClock.passesOwnTimes(liveness.durations().maxClockSkew);\n"),
        t("ClockSetBackTest.theLockIsNotTaken"),
    ),
    mutation(
        "times-of-the-future-in-the-queue",
        "F415",
        "a clock that is set back while the process waits in the queue is not noticed",
        j("Session", "            WallClock.passesOwnTimes(liveness.durations().maxClockSkew);\n"),
        t("ClockSetBackTest.theLockIsReleased"),
    ),
    mutation(
        "waiters-are-less-patient-than-the-gateway",
        "F416",
        "a clock that the gateway has let through ends every waiter",
        j("WallClock", ".toMillis(maxSkewSeconds) + TOLERANCE_MILLIS", ".toMillis(maxSkewSeconds)"),
        t("AcquireTest.aClockThatTheGatewayLetsThroughIsWaitedFor"),
    ),
    mutation(
        "a-refused-time-is-final-at-once",
        "F416",
        "a host that is ahead by hardly more than is allowed does not wait",
        j(
            "DefiniteTxn",
            "if (System.nanoTime() - begin >= TimeUnit.MILLISECONDS.toNanos(WallClock.TOLERANCE_MILLIS)) {",
            "if (System.nanoTime() - begin >= 0) {",
        ),
        t("ClockAheadTest.aTimeThatIsRefusedForAMomentIsPromisedAfterwards"),
    ),
    mutation(
        "any-text-is-a-clock",
        "F417",
        "a clock that is no time ends in the error of a parser, or counts as none",
        j("TableClock", "if (!InstantTime.isValid(time)) {", "if (time == null) {"),
        t("AcquireTest.aClockThatCannotBeReadIsNamed"),
    ),
    mutation(
        "a-clock-that-went-back-uses-up-retries",
        "F47",
        "an attempt whose host's clock is set back under the lock counts against the limit of retries",
        Edit(
            "spark-images/hudi_runtime/process/errors.py",
            "    ErrorCode.CLOCK_NOT_PAST: FailureClass.CLOCK_SKEW,\n",
            "",
        ),
        "tests/tiers/unit/runtime/process/test_errors.py::test_classes",
    ),
    mutation(
        "clock-not-moved-by-instants",
        "I10 F6",
        "the table's clock is not written ahead of a requested file",
        j(
            "InstantProtocol",
            "        if (!savepoint) {\n            txn.then(Txn.Op.put(keys.clock()",
            "        if (!savepoint && time.isEmpty()) {\n            txn.then(Txn.Op.put(keys.clock()",
        ),
        t("TimelineGuardTest.theRecordAndTheClockComeBeforeTheFile"),
    ),
    mutation(
        "savepoints-move-the-clock-back",
        "I10 F6",
        "a savepoint, which bears the time of an old commit, sets the table's clock back to it",
        j(
            "InstantProtocol",
            "        if (!savepoint) {\n            txn.then(Txn.Op.put(keys.clock()",
            "        if (!time.isEmpty()) {\n            txn.then(Txn.Op.put(keys.clock()",
        ),
        t("TimelineGuardTest.aSavepointIsTheAgentsBehindTheClosedGate"),
    ),
    mutation(
        "clock-not-moved-by-completions",
        "I10 F6",
        "the table's clock is not written ahead of a completed file",
        j(
            "InstantProtocol",
            "txn.then(Txn.Op.put(keys.clock(), TableClock.json(completion), 0)) // I10\n                .otherwise(",
            "txn.otherwise(",
        ),
        t("TimelineGuardTest.theClockIsWrittenBeforeTheCompletedFile"),
    ),
    mutation(
        "publish-without-the-lock",
        "I1 I3",
        "a commit is published without comparing the token",
        j("InstantProtocol", "            .createRevision(keys.lock(), token) // I1, I3\n"),
        t("MutationTokenCompareTest.publish"),
        t("ReleaseTest.closingAfterTheLockWentAwaySendsNothing"),
    ),
    mutation(
        "publish-what-was-abandoned",
        "I7 F4",
        "a commit is published although its owner has given it up, or somebody else owns it",
        j(
            "InstantProtocol",
            (
                "        if (seen == null || !isPendingOfMine(seen)) {\n"
                "            // I7; Abandoned is the owner's own statement that it will not publish (F4)\n"
            ),
            "        if (seen == null) { // I7; Abandoned is the owner's own statement that it will not publish (F4)\n",
        ),
        t("MutationPendingCompareTest.abandonedBefore"),
        t("MutationPendingCompareTest.ofSomebodyElse"),
    ),
    mutation(
        "publish-what-is-abandoned-meanwhile",
        "I7 F4",
        "a commit is published without comparing that its record is still the one that was read",
        j(
            "InstantProtocol",
            (
                "            .modRevision(keys.instant(time), seen.modRevision()) // still mine and Pending, as just "
                "read\n"
            ),
        ),
        t("MutationPendingCompareTest.abandonedBetweenReadAndTransaction"),
    ),
    mutation(
        "publish-although-fenced",
        "I2 I3",
        "a commit is published without comparing the fence",
        j(
            "InstantProtocol",
            "                .absent(keys.fence(me.inc)) // I2\n",
            "",
        ),
        t("TimelineGuardTest.aFencedSessionCompletesNothing"),
    ),
    mutation(
        "publish-twice",
        "I10 F38",
        "a request to publish that is executed after its repetition sets the clock back",
        j(
            "InstantProtocol",
            "                // F38: a late duplicate must not move the clock\n"
            "                .modRevision(keys.clock(), clock == null ? 0 : clock.modRevision());\n",
            "                ;\n",
        ),
        t("PublishTest.aRequestThatIsExecutedAfterItsRepetitionMovesNothing"),
    ),
    mutation(
        "publish-without-the-lost-answer",
        "F38 availability",
        "a publication whose answer is lost is taken for a refused one",
        j(
            "InstantProtocol",
            "boolean before = TableClock.is(moved, completion);",
            "boolean before = false;",
        ),
        t("PublishTest.anAnswerThatIsLostAfterTheRequestWasExecutedIsASuccess"),
    ),
    mutation(
        "claim-from-the-unknown",
        "I12 F70",
        "an owner without settle record and registration is taken for one that has left",
        j(
            "InstantProtocol",
            "        if (settle == null) {\n            return false;",
            "        if (settle == null) {\n            return true;",
        ),
        t("ClaimTest.notTakenFromAnOwnerOfWhomNothingIsKnown"),
    ),
    mutation(
        "claim-from-the-living",
        "I12 F3",
        "a service instant is taken over although its executor is not settled",
        j(
            "InstantProtocol",
            "if (!previousOwner.equals(record.executor()) || !isSettled(now.one(1))) {",
            "if (!previousOwner.equals(record.executor())) {",
        ),
        t("ClaimTest.notTakenFromALivingOwner"),
    ),
    mutation(
        "claim-while-draining",
        "I12 F3 F17",
        "a service instant is taken over while requests of its executor may be on the wire",
        j(
            "InstantProtocol",
            "return Phase.ROLLING_BACK.is(phase)",
            "return Phase.DRAINING.is(phase) || Phase.ROLLING_BACK.is(phase)",
        ),
        t("ClaimTest.notTakenFromALivingOwner"),
    ),
    mutation(
        "claim-together",
        "I12 F3",
        "a claim does not compare that the record is still the one that was read",
        j(
            "InstantProtocol",
            (
                "                .modRevision(keys.instant(time), seen.modRevision())\n"
                "                .absent(keys.fence(me.inc))\n"
            ),
            "                .absent(keys.fence(me.inc))\n",
        ),
        t("ClaimTest.twoDoNotClaimTheSame"),
    ),
    mutation(
        "claim-although-fenced",
        "I2 I12",
        "a claim does not compare the fence",
        j(
            "InstantProtocol",
            "                .absent(keys.fence(me.inc))\n",
            "",
        ),
        t("ClaimTest.fencedClaimsNothing"),
    ),
    mutation(
        "ticket-without-a-heartbeat",
        "F16",
        "a place in the queue is taken without comparing the heartbeat: a late ticket stands in everybody's way",
        j(
            "LockProtocol",
            "Txn.when().absent(keys.fence(me.inc)).modRevision(keys.alive(me.inc), liveness.aliveRevision());",
            "Txn.when().absent(keys.fence(me.inc));",
        ),
        t("AcquireTest.aLateTicketIsNoZombie"),
    ),
    mutation(
        "zombie-tickets-stay",
        "F16",
        "tickets that nobody waits on are never removed",
        j("Liveness", "if (!waiting.contains(name)) {", "if (waiting.isEmpty() && waiting.contains(name)) {"),
        t("QueueTest.theHeartbeatRemovesTicketsThatNobodyWaitsOn"),
    ),
    mutation(
        "strict-priority",
        "F24",
        "who is overtaken again and again never comes first",
        j(
            "Queue",
            (
                "    private static final Comparator<Ticket> ORDER = Comparator.comparing((Ticket t) -> t.overtaken < "
                "MAX_OVERTAKES)\n"
                "            .thenComparing(t -> t.overtaken < MAX_OVERTAKES ? -t.priority : 0)\n"
                "            .thenComparing(t -> t.createRevision);\n"
            ),
            "    private static final Comparator<Ticket> ORDER =\n"
            "            Comparator.comparing((Ticket t) -> -t.priority).thenComparing(t -> t.createRevision);\n",
        ),
        t("QueueTest.priorityThenAgeAndNobodyIsOvertakenMoreThanEightTimes"),
        t("QueueTest.whoWasOvertakenEightTimesIsNext"),
    ),
    mutation(
        "last-come-first-served",
        "F24",
        "the youngest waiter is first",
        j("Queue", ".thenComparing(t -> t.createRevision);", ".thenComparing(t -> -t.createRevision);"),
        t("QueueTest.firstComeFirstServed"),
    ),
    mutation(
        "one-etcd-member-only",
        "availability",
        "calls stay with the first member of etcd, also when it is gone",
        j("GrpcEtcdClient", "      current.compareAndSet(at, at + 1);\n"),
        t("FailoverTest.aSessionSurvivesTheLossOfTheMemberItIsConnectedTo"),
    ),
    mutation(
        "each-session-has-a-connection",
        "availability",
        "an agent of a thousand tables has a thousand connections to the gateway",
        j(
            "GrpcEtcdClient",
            "new GrpcEtcdClient(settings, Connection.shared(settings));",
            "new GrpcEtcdClient(settings, Connection.own(settings));",
        ),
        t("KeepAlivesTest.allLeasesOfAProcessGoOnOneStream"),
        t("SharedConnectionTest.allTablesShareOneConnectionAndOneStream"),
    ),
    mutation(
        "who-leaves-closes-the-connection",
        "availability",
        "the end of one session ends the heartbeats of all tables of its process",
        j("Connection", "            if (users > 0) {", "            if (users < 0) {"),
        t("KeepAlivesTest.theConnectionIsClosedWithItsLastUser"),
        t("SharedConnectionTest.theEndOfOneSessionLeavesTheOthers"),
    ),
    mutation(
        "who-has-left-goes-on",
        "I2",
        "a session that has left sends requests on the connection of those that stay",
        j(
            "GrpcEtcdClient",
            "        if (closed.get()) {\n            throw",
            "        if (!closed.get() && closed.get()) {\n            throw",
        ),
        t("KeepAlivesTest.theConnectionIsClosedWithItsLastUser"),
        t("SharedConnectionTest.theEndOfOneSessionLeavesTheOthers"),
    ),
    mutation(
        "an-answer-keeps-all-alive",
        "I2",
        "whoever shares the stream takes the answer of another lease for its own: one that etcd is silent to goes on",
        j(
            "KeepAlives",
            "                request = waiting.remove(response.getID());\n",
            "                request = waiting.remove(response.getID());\n"
            "                waiting.values().forEach(each -> each.answer.complete(response.getTTL()));\n",
        ),
        t("KeepAlivesTest.anAnswerIsOneForTheLeaseThatItNames"),
    ),
    mutation(
        "one-deadline-for-all-tables",
        "availability",
        "a session that etcd does not answer goes on as long as another one of its process is answered",
        j("Silence", "    private volatile long lastAckSend;", "    private static volatile long lastAckSend;"),
        t("SharedConnectionTest.whoHasNoAnswerEndsAtItsDeadlineAndNobodyElse"),
    ),
    mutation(
        "one-table-halts-its-agent",
        "F583",
        "an outage that one table of an agent does not bear ends the services of all",
        j("Liveness", "        if (beside.allSilent()) {", "        if (me != null) {"),
        t("SharedConnectionTest.anAgentOutlivesTheShortestSilenceOfItsTables"),
    ),
    mutation(
        "a-table-that-alone-has-no-answer-stays",
        "F583",
        "an agent goes on with a table that etcd alone does not answer, and nobody takes it over",
        j("Liveness", "        if (passedOver) {", "        if (me == null) {"),
        t("SharedConnectionTest.aTableOfAnAgentThatAloneHasNoAnswerEndsAlone"),
    ),
    mutation(
        "a-refused-registration-keeps-its-lease",
        "F584",
        "an agent that is not admitted at one table uses up the leases of all",
        j(
            "Liveness",
            "                revoke(granted);\n                if (e.outcome()",
            "                if (e.outcome()",
        ),
        t("RegistrationTest.aRegistrationThatIsRefusedLeavesNoLease"),
    ),
    mutation(
        "tables-are-opened-one-after-the-other",
        "F586",
        "a table that etcd refuses for a minute keeps all tables of its agent waiting",
        j("OpenSessions", "    public static Session open(Map", "    public static synchronized Session open(Map"),
        t("SharedConnectionTest.aTableThatCannotBeOpenedKeepsNoOtherOneWaiting"),
    ),
    mutation(
        "a-late-answer-counts-for-a-later-request",
        "I2",
        "the answer to a request that was given up prolongs what its session believes of its lease",
        j("KeepAlives", "            stream.leave();\n"),
        t("KeepAlivesTest.aLateAnswerIsNoneToALaterRequest"),
    ),
    mutation(
        "all-wait-behind-a-slow-lease",
        "availability",
        "a lease that etcd is slow with keeps all tables of its process from their heartbeats",
        j(
            "GrpcEtcdClient",
            "Math.min(PATIENCE_NANOS, TimeUnit.MILLISECONDS.toNanos(timeoutMillis) / 3)",
            "10 * PATIENCE_NANOS",
        ),
        t("KeepAlivesTest.nobodyWaitsBehindALeaseThatEtcdIsSlowWith"),
    ),
    mutation(
        "a-stream-is-opened-all-the-time",
        "availability",
        "all tables of a process open streams in a loop at a gateway that begins",
        j("KeepAlives", "            if (pause > 0) {", "            if (pause > LIFE_NANOS) {"),
        t("KeepAlivesTest.aStreamThatEndsIsOpenedAgainForAllAndNotAllTheTime"),
    ),
    mutation(
        "heartbeats-wait-for-each-other",
        "availability",
        "a table whose etcd is slow delays the heartbeats of the others",
        j(
            "Heartbeats",
            "beats.execute(() -> next(heart, pauseAfter(heart)));",
            "next(heart, pauseAfter(heart));",
        ),
        t("HeartbeatsTest.noHeartbeatWaitsForTheAnswerToAnother"),
    ),
    mutation(
        "a-beat-without-a-thread-is-no-silence",
        "availability",
        "a process that cannot make threads has no heartbeat, and does not halt",
        j("Heartbeats", "            next(heart, heart.missed(e));\n"),
        t("HeartbeatsTest.aBeatThatHasNoThreadIsMissed"),
    ),
    mutation(
        "the-dead-go-first",
        "availability",
        "instants of a writer of higher priority that is dead keep the others back",
        j("Precedence", "    ahead.retainAll(alive);\n"),
        t("PrecedenceTest.theLivingWithAHigherPriority"),
    ),
    mutation(
        "waiters-poll",
        "availability",
        "who waits for the lock looks again every 50 ms: with many waiters etcd has nothing else to do",
        j("Acquisition", "TimeUnit.SECONDS.toNanos(3)", "TimeUnit.MILLISECONDS.toNanos(50)"),
        t("FairnessTest.waitersAskSeldom"),
    ),
    mutation(
        "everybody-overtakes",
        "availability",
        "tickets that go first anyhow count as overtakers",
        j("LockWatch", "if (!older.contains(ticket)) {", "if (true) {"),
        t("LockWatchTest.whoIsYoungerAndHasTheLockHasOvertaken"),
    ),
    mutation(
        "an-old-read-is-believed",
        "availability",
        "what a read says of the lock counts although an event is newer",
        j("LockWatch", "if (view.revision > lockRevision) {", "if (view.revision > 0) {"),
        t("LockWatchTest.aReadThatIsOlderThanAnEventIsNotBelieved"),
    ),
)
