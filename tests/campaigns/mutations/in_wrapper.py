"""Mutations of what stands between Hudi and the store: session, storage wrapper, conflict strategy,
lock provider.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import AVAILABILITY, mutation

CLEANS = "tests/tiers/hudi/test_clean_beside_writers.py"
COLUMNS = "tests/tiers/unit/runtime/table/test_columns.py"
PARTITIONED = '        return f"{where}: the table has no partitionFields, and whole partitions are what expires"\n'
BUCKETS = "|| (buckets && !sharedBuckets(mine, other).isEmpty())"
CONFLICT = (
    "        return !isCompaction(mine, other)\n"
    "                && (super.hasConflict(mine, other)\n"
    f"                        {BUCKETS}\n"
    "                        || !writtenAndReplaced(mine, other).isEmpty()\n"
    "                        || !aboutToBeReplaced(mine, other).isEmpty());\n"
)
NO_CONFLICT = j("FencedConflictResolutionStrategy", CONFLICT, "        return false;\n")
NOTED = "tests/tiers/hudi/test_noted_reads.py::test_what_a_write_is_made_from"
OWN = "        mine.ownStatement = own;\n"
NO_GUARD_OF_FOLDERS = (
    "            if (!TimelinePath.isMetadataTable(path, session.basePath())) {\n                throw"
)

RELEASE = (
    mutation(
        "release-before-the-drain",
        "I1 I3 F1",
        "a lock is released as soon as a look does not show the publication: its request may still be on the wire",
        j("Session", "      Pause.millis(liveness.durations().drain * 1000L); // the wait before release\n"),
        t("MutationWaitBeforeReleaseTest.nobodyGetsTheLockBeforeARequestOnTheWireHasLanded"),
        t("ReleaseTest.aRequestThatDiedKeepsTheLockForTheDrainAndTheRecord"),
    ),
    mutation(
        "an-exception-is-an-answer",
        "I1 F1",
        "a publication that ends with an exception counts as not published",
        (
            j(
                "Publication",
                "private volatile Outcome outcome = Outcome.UNKNOWN;",
                "private volatile Outcome outcome = Outcome.ABSENT;",
            ),
            j("Publication", "    outcome = Outcome.UNKNOWN;\n", "    outcome = Outcome.ABSENT;\n"),
        ),
        t("MutationWaitBeforeReleaseTest.nobodyGetsTheLockBeforeARequestOnTheWireHasLanded"),
        t("ReleaseTest.aRequestThatLandsDuringTheDrainIsACompletedInstant"),
        t("ReleaseTest.aStreamThatIsNeverClosedIsUnknown"),
    ),
    mutation(
        "a-failed-listing-is-empty",
        "I4 I11",
        "a listing that fails says that the commit is not there",
        j(
            "Publication",
            "    long found = listing.length();\n",
            (
                "    long found = -1;\n"
                "    try {\n"
                "      found = listing.length();\n"
                "    } catch (IOException e) {\n"
                "      found = -1;\n"
                "    }\n"
            ),
        ),
        t("ReleaseTest.aListingThatFailsDecidesNothing"),
    ),
    mutation(
        "given-up-on-the-wire",
        "I3 F1 F4",
        "an instant is given up although its completed file may be on the wire",
        j(
            "OwnInstants",
            (
                "            if (lock != null && lock.hasPublished(instant)) {\n"
                "                return false;\n"
                "            }\n"
            ),
        ),
        t("ReleaseTest.anInstantOnTheWireIsNotAbandonedBeforeTheRelease"),
    ),
    mutation(
        "published-while-released",
        "I1",
        "a second publication begins while the lock is being released",
        j("HeldLock", "    if (releasing) {\n", "    if (releasing && publications.isEmpty()) {\n"),
        t("ReleaseTest.nothingIsPublishedWhileReleasing"),
    ),
    mutation(
        "one-check-per-file",
        "I3",
        "a completed file is checked when it is opened, not when its request goes out",
        j(
            "TimelineGuard",
            '            beforeWrite("close " + path, target, path, lister);\n',
        ),
        t("ReleaseTest.closingAfterTheLockWentAwaySendsNothing"),
    ),
    mutation(
        "one-check-per-requested-file",
        "I1 I3",
        "a requested file is checked when it is opened, not when its request goes out",
        j(
            "TimelineGuard",
            "if (target.kind == TimelinePath.Kind.REQUESTED && !target.metadataTable && !target.temporary) {",
            "if (target.base == null) {",
        ),
        t("ReleaseTest.closingARequestedFileAfterTheLockWentAwaySendsNothing"),
    ),
)

CLOCK = (
    mutation(
        "instant-behind-the-clock",
        "I10 F6",
        "an instant is begun although its time is not past the table's clock",
        j(
            "OwnInstants",
            "if (!InstantTime.isAfter(instant, lock.clock())) { // I10",
            "if (instant.isEmpty()) { // I10",
        ),
        t("MutationClockCompareTest.anInstantThatIsNotPastTheClock"),
        t("MutationClockCompareTest.anInstantThatIsNotPastOnesOwnPromise"),
    ),
    mutation(
        "completion-behind-the-clock",
        "I10 I8 F6",
        "a commit is completed although its time is not past the table's clock: readers may never see it",
        j(
            "OwnInstants",
            "if (!promised && !InstantTime.isAfter(completion, lock.clock())) { // I10",
            "if (!promised && completion.isEmpty()) { // I10",
        ),
        t("MutationClockCompareTest.aCompletionTimeThatIsNotPastTheClock"),
    ),
    mutation(
        "no-clock-means-the-beginning",
        "I10",
        "a table without a clock begins at no time at all, whatever its timeline says",
        j(
            "Session",
            "        clock = InstantTime.max(clock, storage.latestTime());\n",
        ),
        t("AcquireTest.withoutAClockTheTimelineIsRead"),
        t("AcquireTest.aClockThatEtcdHasForgottenIsReadFromTheTimeline"),
    ),
    mutation(
        "clock-not-waited-for",
        "I10 F6",
        "a host whose clock is behind begins before the table's clock has passed there",
        j("Session", "        WallClock.passes(clock, liveness.durations().maxClockSkew); // I10\n", ""),
        t("MutationClockCompareTest.aClockThatMovesFarAheadOnTheWay"),
    ),
    mutation(
        "slow-host-waits-with-the-lock",
        "F19",
        "a host whose clock is far behind finds out with the lock in its hand",
        j(
            "Acquisition",
            "        if (view.clock != null) {\n",
            "        if (view.clock == null && view.gate == null) {\n",
        ),
        t("AcquireTest.theClockOfTheTableMustNotBeFarAhead"),
    ),
)

GUARD = (
    mutation(
        "a-driver-asks-itself",
        "F503 availability",
        "a driver that computes locally asks itself to delete a file, and waits for its own answer",
        j("HudiOperatorPlugin", "!DRIVER.equals(executor)", "true"),
        t("PluginTest.aDriverThatComputesLocallyDoesNotAskItself"),
    ),
    mutation(
        "tables-far-below-a-folder",
        "F502 I8",
        "a folder is deleted that has a table in a folder below",
        j("FolderRules", "fs.listFiles(folder, true)", "fs.listFiles(folder, false)"),
        t("FolderRulesTest.withoutASession"),
    ),
    mutation(
        "a-folder-that-vanishes",
        "F508 availability",
        "a deletion fails because another task deletes a folder below",
        j("FolderRules", "if (attempt == LISTINGS) {", "if (attempt > 0) {"),
        t("FolderRulesTest.aFolderThatVanishesWhileItIsListedIsNoError"),
    ),
    mutation(
        "executors-delete-nothing",
        "F503 availability",
        "what a task deletes of a timeline is refused in its executor, which has no session",
        j("TimelineGuard", "if (remover != null && OpenSessions", "if (remover == null && OpenSessions"),
        "tests/tiers/hudi/test_lost_executor.py::test_a_writer_with_executors_archives_the_metadata_table",
    ),
    mutation(
        "a-lost-instant-beats-on",
        "F77",
        "Hudi's heartbeat file of an instant that was given up may be made anew",
        j("TimelineGuard", '      GivenUp.requireNotBeating("create " + path, path);\n'),
        t("TimelineGuardTest.theHeartbeatOfAnInstantThatWasGivenUpEnds"),
    ),
    mutation(
        "files-of-others-among-the-data",
        "F78",
        "a writer's program may create any file in the table's folder, as long as its name is not one of Hudi's",
        j("DataFiles", "      requireNotAmongData(path);\n"),
        t("DataFilesTest.aWriterPutsNoFileOfItsOwnAmongTheData"),
    ),
    mutation(
        "folders-without-a-file",
        "F214",
        "a writer may make any folder in the table's folder, and leave it empty",
        j("FolderRules", "return isWrittenHere(path) && ", "return false && "),
        t("FolderRulesTest.aWriterMakesNoEmptyFolder"),
        t("FolderRulesTest.anExecutorMakesNoEmptyFolder"),
    ),
    mutation(
        "writers-roll-back",
        "I7 F2",
        "a writer may create a rollback or a restore",
        j(
            "OwnInstants",
            "if (me.isWriter() && DESTRUCTIVE.contains(action)) {",
            "if (!me.isWriter() && DESTRUCTIVE.contains(action)) {",
        ),
        t("TimelineGuardTest.aWriterNeverRollsBack"),
        t("TimelineGuardTest.theAgentRollsBackUnderTheLock"),
    ),
    mutation(
        "files-without-the-lock",
        "I3 I7",
        "pending files may be written without lock and without owning the instant",
        j(
            "TimelineGuard",
            "                if (!session.instants().ownsPending(target.instant)) {\n"
            "                    session.instants().beforePendingOfOthers(what);\n"
            "                }\n",
        ),
        t("TimelineGuardTest.withoutTheLockNothingIsRequestedOrCompleted"),
    ),
    mutation(
        "pending-files-of-others-are-anybody-s",
        "I7 F211",
        "a writer that holds the lock may write and remove pending files of instants that others have begun",
        j(
            "OwnInstants",
            '        if (me.isWriter()) {\n            throw ErrorCode.NOT_OWNER.refusal("a writer may not change',
            '        if (held == null) {\n            throw ErrorCode.NOT_OWNER.refusal("a writer may not change',
        ),
        t("TimelineGuardTest.aWriterLeavesPendingInstantsOfOthersAsTheyAre"),
    ),
    mutation(
        "completed-files-may-be-deleted",
        "I8 I3",
        "a file of the timeline is deleted or moved without the lock",
        j(
            "TimelineGuard",
            "        if (target.metadataTable || target.temporary) {\n"
            "            session.instants().requireHeldHere(what);\n"
            "        } else if (target.kind == TimelinePath.Kind.COMPLETED) {\n"
            "            session.instants().beforeCompletedRemoved(what);\n"
            "        } else if (pendingFile) {\n"
            "            session.instants().beforePendingOfOthers(what);\n"
            "        } else {\n"
            "            session.instants().requireHeldNow(what);\n"
            "        }\n",
            "",
        ),
        t("TimelineGuardTest.deletingAndRenamingNeedTheLock"),
    ),
    mutation(
        "folders-may-be-deleted",
        "I8",
        "a folder that holds the timeline may be deleted, also under the lock",
        j("TimelineGuard", NO_GUARD_OF_FOLDERS, "            if (path.isRoot()) {\n                throw"),
        t("TimelineGuardTest.theFoldersAboveATimelineStay"),
    ),
    mutation(
        "metadata-table-is-free",
        "I8",
        "the metadata table's timeline is written without lock and without owning the instant",
        j(
            "TimelineGuard",
            "        if (target.metadataTable || target.temporary) {\n            if (target.instant == null",
            (
                "        if (target.metadataTable) {\n"
                "            return null;\n"
                "        }\n"
                "        if (target.temporary) {\n"
                "            if (target.instant == null"
            ),
        ),
        t("TimelineGuardTest.theMetadataTableFollowsItsTable"),
    ),
    mutation(
        "gate-asks-agents-too",
        "F20",
        "a closed gate keeps the agent out: nothing can be settled",
        j("Gate", "        if (me.isAgent()) {\n            return true;\n        }\n"),
        t("AcquireTest.theGateDecidesWhoMay"),
    ),
    mutation(
        "frozen-is-open",
        "F8",
        "a frozen gate admits everybody",
        j(
            "Gate",
            "{ // frozen, or a state that this version does not know\n            return false;",
            "{ // frozen, or a state that this version does not know\n            return true;",
        ),
        t("AcquireTest.theGateDecidesWhoMay"),
        t("AcquireTest.aGateThatChangesOnTheWayIsReadAgain"),
    ),
    mutation(
        "no-gate-is-open",
        "F8",
        "an etcd without a gate admits everybody",
        j(
            "Gate",
            '      throw ErrorCode.NO_GATE.exception("table " + tableId + " has no gate in etcd");',
            '      kv = new KeyValue("gate", "{\\"state\\":\\"open\\"}", 0, 0, 0);',
        ),
        t("AcquireTest.noGateNobody"),
    ),
    mutation(
        "two-tables-at-one-place",
        "F10",
        "a table that is marked with another table id is used",
        j("TableStorage", "if (!name.equals(tableId)) {", "if (name.isEmpty()) {"),
        t("AcquireTest.anotherTableIdIsRefused"),
    ),
    mutation(
        "two-authorities-for-one-table",
        "F10",
        "a table that another etcd locks too is used",
        j("TableStorage", "if (!theirs.equals(ours)) {", "if (ours.isEmpty()) {"),
        t("AcquireTest.anotherAuthorityIsRefused"),
    ),
    mutation(
        "no-marker",
        "F10",
        "the first process that sees a table leaves no marker",
        j("TableStorage", "if (!found && create(fs, mine, content)) {", "if (!found) {"),
        t("AcquireTest.theMarkerNamesTheAuthority"),
    ),
    mutation(
        "s3-is-not-s3a",
        "F10",
        "two spellings of one path are two tables",
        j("TablePath", '      scheme = "s3a";\n', "      scheme = m.group(1);\n"),
        t("ProtocolDataTest.canonicalPaths"),
    ),
    mutation(
        "streams-stay-open",
        AVAILABILITY,
        "Hudi's own streams of blocks inside log files are used, which keep a connection to the object store for ever",
        j("GuardedFileSystem", "    ClosingInLineFileSystem.serve(name.getAuthority(), conf);\n"),
        t("ClosingInLineFileSystemTest.whatABlockIsReadFromIsClosedWithIt"),
    ),
)

COMMITS = (
    mutation(
        "commit-without-conflict-check",
        "I9",
        "a commit is published although Hudi has not asked for conflicts under this lock",
        j(
            "OwnInstants",
            "boolean competes = me.isWriter() ? INGESTION.contains(action) : REPLACE.equals(action);",
            "boolean competes = !me.isWriter() && REPLACE.equals(action);",
        ),
        t("TimelineGuardTest.aCommitThatWasNotCheckedForConflictsIsRefused"),
        t("NonBlockingTest.theOptionAloneDoesNotSwitchConflictChecksOff"),
        t("NonBlockingTest.aLockThatTheProviderDidNotTakeAllowsNoCommit"),
    ),
    mutation(
        "conflict-check-of-an-earlier-lock",
        "I9",
        "a conflict check counts also for a later lock cycle",
        j(
            "HeldLock",
            "private final Set<String> checked = new HashSet<>();",
            "private static final Set<String> checked = new HashSet<>();",
        ),
        t("TimelineGuardTest.aCommitThatWasNotCheckedForConflictsIsRefused"),
    ),
    mutation(
        "no-commit-conflicts",
        "I9",
        "two commits of one file group are no conflict",
        NO_CONFLICT,
        t("ConflictTest.whoConflicts"),
    ),
    mutation(
        "no-commit-conflicts-in-a-cell",
        "I9",
        "two commits of one file group are no conflict, in a cell of RFC-22's plan",
        NO_CONFLICT,
        "tests/tiers/hudi/test_matrix.py::test_a_cell_with_a_race_is_ok",
    ),
    mutation(
        "programs-never-lose-a-race",
        "I9",
        "programs that change one file group at once all commit",
        NO_CONFLICT,
        "tests/tiers/hudi/test_multi_writer.py::test_programs_insert_update_and_delete_in_rounds",
    ),
    mutation(
        "compaction-beats-writers",
        "availability",
        "a compaction that completed meanwhile makes a delta commit fail",
        j(
            "FencedConflictResolutionStrategy",
            "        return !isCompaction(mine, other)\n                && (super",
            "        return (super",
        ),
        t("ConflictTest.whoConflicts"),
    ),
    mutation(
        "partitions-are-deleted-over-writes",
        "I9",
        "a partition is deleted although it was written to meanwhile, as Hudi itself would",
        j("FencedConflictResolutionStrategy", "|| !writtenAndReplaced(mine, other).isEmpty()\n", "\n"),
        t("ConflictTest.aPartitionIsNotDeletedOverAWriteToIt"),
    ),
    mutation(
        "clustering-without-conflict-check",
        "I9",
        "an agent's clustering is published although Hudi has not asked for conflicts under this lock",
        j(
            "OwnInstants",
            "me.isWriter() ? INGESTION.contains(action) : REPLACE.equals(action);",
            "me.isWriter() && INGESTION.contains(action);",
        ),
        t("TimelineGuardTest.aClusteringIsPublishedOnlyAfterTheCheck"),
    ),
    mutation(
        "two-files-of-one-bucket",
        "I9",
        "two commits that each made the first file of a bucket are no conflict",
        j("FencedConflictResolutionStrategy", BUCKETS),
        t("HudiIntegrationTest.twoFirstFilesOfOneBucketAreAConflict"),
    ),
    mutation(
        "buckets-of-every-index",
        "availability",
        "file groups whose names begin alike count as one bucket with every index",
        j(
            "FencedConflictResolutionStrategy",
            "(buckets && !sharedBuckets(mine, other).isEmpty())",
            "!sharedBuckets(mine, other).isEmpty()",
        ),
        t("HudiIntegrationTest.withoutNumberedBucketsTheBeginningOfANameMeansNothing"),
    ),
    mutation(
        "columns-of-an-older-table",
        "I9",
        "a commit goes on although the table's schema was changed after its columns had been fitted",
        j(
            "FencedConflictResolutionStrategy",
            "            CommitChecks.requireSchema(metaClient, props, schema, begun);\n",
        ),
        t("SchemaMovedTest.betweenTheLookAndTheBeginningOfTheWrite"),
    ),
    mutation(
        "columns-of-an-older-table-non-blocking",
        "I8",
        (
            "in the non-blocking mode a commit goes on although the table's schema was changed: readers take it from "
            "the commit begun last"
        ),
        j(
            "EtcdLockProvider",
            "            CommitChecks.requireSchema(metaClient, props, schema, null);\n",
        ),
        t("SchemaMovedTest.inTheNonBlockingModeNothingMayHaveMoved"),
    ),
    mutation(
        "checks-compare-what-hudi-has-listed",
        "I9",
        "what completed between Hudi's listing and the lock is not compared",
        j(
            "FencedConflictResolutionStrategy",
            "        metaClient.reloadActiveTimeline(); // Hudi may have listed it before the lock; see CommitChecks\n",
        ),
        t("SchemaMovedTest.sinceHudiHasListedTheTimeline"),
    ),
    mutation(
        "columns-and-time-of-one-listing",
        "I9",
        "columns are of a listing that may have missed a commit, and the commit is not compared",
        a(
            "table/hudi",
            "            listed, timeline = timeline.newest, self.timeline()\n",
            "            listed = timeline.newest\n",
        ),
        f"{COLUMNS}::test_what_a_listing_misses_is_compared_under_the_lock",
    ),
    mutation(
        "an-older-time-than-need-be",
        "availability",
        "a writer that waits for its source compares everything that was committed meanwhile under the lock",
        a("table/hudi", "        if listed is None or timeline.newest != listed:\n", "        if listed is None:\n"),
        f"{COLUMNS}::test_others_commit",
    ),
    mutation(
        "the-columns-of-another-commit",
        "I9",
        "what Hudi reads of a commit that has just completed counts as the columns of the one before it",
        a(
            "table/hudi",
            "        if schema is not None and text and last == requested:\n",
            "        if schema is not None and text:\n",
        ),
        f"{COLUMNS}::test_a_commit_that_completes_while_hudi_is_asked",
    ),
    mutation(
        "what-cannot-be-read-was-archived",
        "I11",
        "a commit that cannot be read counts as one that has left the timeline",
        a("table/hudi", "if any(cause.type in ABSENT for cause in java_causes(error)):", "if java_causes(error):"),
        f"{COLUMNS}::test_a_commit_is_read_by_its_name",
    ),
    mutation(
        "a-table-service-has-a-schema",
        "availability",
        "a compaction counts as a change of the columns",
        j(
            "CommitChecks",
            "schema == null || !WriteOperationType.canUpdateSchema(metadata.getOperationType())",
            "schema == null",
        ),
        t("SchemaMovedTest.aTableServiceMovesNothing"),
    ),
    mutation(
        "progress-is-not-compared",
        "I9 F5",
        "a writer commits although another incarnation of it has committed after it read its progress",
        j(
            "FencedConflictResolutionStrategy",
            (
                '      CommitChecks.requireProgress(metaClient, props, session.inc(), "instant " + '
                "current.requestedTime());\n"
            ),
        ),
        t("HudiIntegrationTest.progressThatMovedStopsTheCommit"),
    ),
    mutation(
        "unreadable-progress-is-no-progress",
        "I11 F5",
        "a commit whose metadata cannot be read counts as somebody else's",
        j(
            "CommitChecks",
            "            throw ErrorCode.PROGRESS_MOVED.exception(\n"
            '                    "cannot read the metadata of instant " + completed.requestedTime(), e);\n',
            "            return;\n",
        ),
        t("HudiIntegrationTest.progressThatCannotBeReadStopsTheCommit"),
    ),
    mutation(
        "commit-past-the-wrapper",
        "I3 I9",
        "a commit goes through a file system that nobody guards",
        j(
            "FencedConflictResolutionStrategy",
            "    CommitChecks.requireGuard(metaClient, base, GuardedFileSystem.class);\n",
        ),
        t("HudiIntegrationTest.noCommitWithoutTheStorageWrapper"),
    ),
    mutation(
        "commit-under-no-lock",
        "I1 I9",
        "conflicts are looked for although the lock is not held",
        j("FencedConflictResolutionStrategy", "if (lock == null || !lock.isHere()) {", "if (session == null) {"),
        t("HudiIntegrationTest.noCommitWithoutTheLock"),
    ),
    mutation(
        "commit-under-another-lock",
        "I1",
        "a commit whose options name another lock provider goes on",
        j(
            "CommitChecks",
            '    require("hoodie.write.lock.provider", provider.getName(), config.getLockProviderClass());\n',
        ),
        t("HudiIntegrationTest.noCommitWithAnotherLockProvider"),
    ),
    mutation(
        "eager-rollback-by-option",
        "I7 F2",
        "an option makes a writer roll back what living writers have pending",
        j("EtcdLockProvider", 'if ("EAGER".equalsIgnoreCase(', 'if ("".equalsIgnoreCase('),
        t("HudiIntegrationTest.theProviderRefusesOptionsThatWouldDestroy"),
    ),
    mutation(
        "single-writer-by-option",
        "I9",
        "an option makes Hudi take the lock without looking for conflicts",
        j("EtcdLockProvider", 'if ("SINGLE_WRITER".equalsIgnoreCase(', 'if ("NONE".equalsIgnoreCase('),
        t("HudiIntegrationTest.theProviderRefusesOptionsThatWouldDestroy"),
    ),
    mutation(
        "a-fenced-writer-retries",
        "I2",
        "what a fenced writer is told makes Hudi try again",
        j(
            "ErrorCode",
            "return new HoodieException(message(detail));",
            "return new org.apache.hudi.exception.HoodieLockException(message(detail));",
        ),
        t("HudiIntegrationTest.aFencedWriterGetsAnExceptionThatHudiDoesNotRetry"),
    ),
    mutation(
        "non-blocking-by-option",
        "I9",
        "an option switches the conflict checks off",
        j(
            "Session",
            "return lock != null && lock.isNonBlocking() && me.isWriter();",
            "return lock != null && me.isWriter();",
        ),
        t("NonBlockingTest.theOptionAloneDoesNotSwitchConflictChecksOff"),
    ),
    mutation(
        "non-blocking-without-checks",
        "I9 F5",
        "in the non-blocking mode a commit needs no check at all",
        j(
            "HeldLock",
            "return checked.contains(instant);",
            "return checked.contains(instant) || nonBlocking;",
        ),
        t("NonBlockingTest.aLockThatTheProviderDidNotTakeAllowsNoCommit"),
        t("NonBlockingTest.onlyTheClientThatHasBegunAnInstantCompletesIt"),
    ),
    mutation(
        "refused-writes-are-in-the-way",
        "F378",
        "in the non-blocking mode a write is compared with what the refused ones of its process have read",
        j("OwnInstants", "new TreeSet<>(ofClients.getOrDefault(client, Set.of()))", "new TreeSet<>(pending)"),
        t("NonBlockingTest.aWriteIsNotComparedWithWhatARefusedOneHasRead"),
    ),
    mutation(
        "failed-statements-are-in-the-way",
        "F379",
        "a statement is compared with what one has read that failed before its write began",
        j("TableReads", f"        mine.statement = null;\n{OWN}", OWN),
        t("SnapshotMovedTest.whatAFailedStatementHasReadIsNotInTheRowsOfTheNextOne"),
    ),
    mutation(
        "statements-forget-what-programs-have-read",
        "F379 F88",
        "a statement that begins forgets what its program has read",
        j(
            "TableReads",
            f"        mine.statement = null;\n{OWN}",
            f"        mine.statement = null;\n        reads.clear();\n{OWN}",
        ),
        t("SnapshotMovedTest.aStatementThatBeginsForgetsNothingThatTheProgramHasRead"),
    ),
    mutation(
        "look-ups-hide-what-was-read",
        "F424",
        "what the runtime looks up before a try replaces what the program has read before the first one",
        j("TableReads", "        } else if (mine.looksUp) {\n", "        } else if (mine.looksUp && number < 0) {\n"),
        t("SnapshotMovedTest.whatIsLookedUpReplacesNothingThatTheProgramHasRead"),
    ),
    mutation(
        "look-ups-are-not-compared",
        "F424 I13",
        "a write is not compared with what completed since the runtime looked its keys up",
        j(
            "TableReads",
            "Base.both(Base.both(mine.statement, mine.lookedUp), mine.asked)",
            "Base.both(mine.statement, mine.asked)",
        ),
        t("SnapshotMovedTest.whatIsLookedUpCountsForItsWriteAlone"),
    ),
    mutation(
        "look-ups-are-the-programs",
        "F424",
        "the session is not told that a read is a look-up of the runtime",
        a(
            "writer/commit",
            "            self._session.looking_up(deletes=delete and not validations.read_the_table(asked)),\n",
        ),
        "tests/tiers/unit/runtime/writer/test_scopes.py::test_look_ups_are_the_runtimes",
    ),
    mutation(
        "buckets-are-replaced",
        "F423",
        "in the non-blocking mode an instant may replace file groups, which keep their ids",
        j("OwnInstants", "REPLACES.contains(action) && lock.isNonBlocking()", "REPLACES.contains(instant)"),
        t("NonBlockingTest.nothingReplacesFileGroups"),
    ),
    mutation(
        "replaced-buckets-come-back",
        "F423",
        "in the non-blocking mode nobody asks whether file ids were replaced in another one",
        j("EtcdLockProvider", "            CommitChecks.requireNoReplacedBucket(metaClient);\n"),
        t("NonBlockingTest.whatWasReplacedMustNotHaveTheIdsOfThisMode"),
    ),
    mutation(
        "saves-replace-buckets",
        "F423",
        "the list of statements has one verdict for all modes",
        j("Statements", "if (!instead.isEmpty()) {", 'if ("nothing".equals(instead)) {'),
        t("StatementsTest.whatReplacesFileGroupsIsRefusedInNonBlocking"),
    ),
    mutation(
        "buckets-expire",
        "F423",
        "partitions of a table of mode NonBlocking may expire",
        o(
            "api/services",
            f"{PARTITIONED}    if mode == words.Concurrency.NON_BLOCKING:\n",
            f'{PARTITIONED}    if mode == "":\n',
        ),
        "tests/tiers/unit/api/test_service_spec.py::test_what_cannot_expire",
    ),
    mutation(
        "rows-forget-their-table-on-the-way",
        "F402",
        "what a statement takes to another table counts for that statement alone",
        j("TableReads", "if (mine.ownStatement) {", "if (mine.ownStatement || mine.statement == null) {"),
        t("SnapshotMovedTest.whatAStatementTakesToAnotherTableIsInTheProgramsHands"),
    ),
    mutation(
        "a-name-is-what-it-was",
        "F420",
        "`spark.table` reads the state that the name had at its first use in that session",
        j(
            "GuardedParser",
            "        session.sessionState().catalog().invalidateAllCachedTables();\n        return next.parseMultipart",
            "        return next.parseMultipart",
        ),
        NOTED,
    ),
    mutation(
        "frames-are-as-new-as-their-rows-are-asked-for",
        "F421",
        "rows of a frame that was made before a write count as read after it",
        j("ExecutedReads", "        StatementRules.executed(plan);\n"),
        NOTED,
    ),
    mutation(
        "what-a-statement-plans-is-the-programs",
        "F88 F440",
        "a statement's query that Spark plans before it runs it counts as a read of the program",
        j("StatementRules", "isInStatement() || isStatementsQuery()", "isInStatement()"),
        NOTED,
    ),
    mutation(
        "a-look-is-a-read",
        "F441",
        "a query that was made and not executed makes older rows new",
        j("TableReads", "            if (one.rows == rows && one.number >", "            if (one.number >"),
        t("SnapshotMovedTest.aQueryThatWasNotExecutedReplacesNothing"),
    ),
    mutation(
        "the-first-read-is-the-last-one",
        "availability F446",
        "of too many reads the oldest becomes the newest",
        j("TableReads", "new Read(next.number, next.thread,", "new Read(++number, next.thread,"),
        t("SnapshotMovedTest.theFirstReadOfALongProgramIsNotItsLast"),
    ),
    mutation(
        "what-is-planned-is-read",
        "F448",
        "a plan that is made for `cache()`, and not run, makes older rows new",
        j("StatementRules", "boolean rows = !isOnlyPlanned();", "boolean rows = true;"),
        NOTED,
    ),
    mutation(
        "the-look-for-duplicates-is-the-programs",
        "availability F447",
        "what the runtime reads to see whether there is a doubled key counts for each try",
        a("read/sources", "    with looking_up():  # each try looks again\n", "    if looking_up is not None:\n"),
        "tests/tiers/unit/runtime/read/test_remove_duplicates.py::test_the_look_before_the_batch_is_the_runtimes",
    ),
    mutation(
        "columns-are-rows",
        "F441",
        "what is only analyzed counts as executed",
        j(
            "StatementRules",
            "        read(reads, base, byStatement, false);",
            "        read(reads, base, byStatement, true);",
        ),
        NOTED,
    ),
    mutation(
        "a-try-is-a-write",
        "F442",
        "each try of a batch forgets what the program had read before it",
        j(
            "TableReads",
            "        if (!mine.inBatch) {\n            consume(",
            "        if (!mine.inBatch || number > 0) {\n            consume(",
        ),
        t("SnapshotMovedTest.eachTryOfABatchIsMadeFromWhatWasReadBeforeIt"),
    ),
    mutation(
        "a-batch-is-not-told",
        "F442",
        "the session is not told that its writes are tries of one batch",
        a(
            "writer/commit",
            "        with self._session.batch():\n            return self._tries(batch, base=base)\n",
            "        return self._tries(batch, base=base)\n",
        ),
        "tests/tiers/unit/runtime/writer/test_scopes.py::test_the_tries_of_a_batch_are_one_write",
    ),
    mutation(
        "the-next-try-is-as-old-as-the-first",
        "availability F442",
        "what the function of an Update has read for one try counts for the next one",
        j(
            "TableReads",
            "        mine.tries = true;\n        mine.asked = null;\n",
            "        mine.tries = true;\n",
        ),
        t("SnapshotMovedTest.whatATryThatDidNotBeginHasReadIsForgotten"),
    ),
    mutation(
        "a-thread-is-its-ident",
        "F40 F443",
        "a thread takes over the reads of one that has ended",
        a(
            "read/reads",
            "class _Thread(threading.local):\n    def __init__(self) -> None:\n        self.name = uuid.uuid4().hex\n",
            "class _Thread:\n    def __init__(self) -> None:\n        self.name = uuid.uuid4().hex\n",
        ),
        "tests/tiers/unit/runtime/read/test_reads.py::test_an_ident_that_is_used_again_is_another_thread",
    ),
    mutation(
        "the-first-read-counts-for-ever",
        "availability F444",
        "a thread that writes what another one reads is compared with that one's first read",
        a(
            "read/reads",
            "if r.thread != self.thread and r.number > before.number]",
            "if r.thread != self.thread]",
        ),
        "tests/tiers/unit/runtime/read/test_reads.py::test_workers_of_a_pool_write_what_was_read_last",
    ),
    mutation(
        "the-metadata-table-is-not-read",
        "I9 F445",
        "a program may ask the metadata table of its table, and nobody knows as of when",
        j("StatementRules", "        requireNoMetadata(table.getBasePath().toString());\n"),
        "tests/tiers/hudi/test_statements.py::test_no_statement_loses_a_row",
    ),
    mutation(
        "files-are-listed-when-they-are-read",
        "F466 I9",
        "a query lists its files when it runs, and leaves out what was cleaned before",
        a("table/hudi", '        "hoodie.datasource.read.file.index.listing.mode": "eager",\n'),
        f"{CLEANS}::test_a_clean_leaves_what_a_pending_write_has_to_list",
    ),
    mutation(
        "programs-list-their-files-late",
        "F466 I9",
        "a program's query lists its files when it runs, and leaves out what was cleaned before",
        o(
            "manifests/hudi_conf",
            '        "hoodie.datasource.read.file.index.listing.mode": "eager",\n',
        ),
        f"{CLEANS}::test_a_clean_leaves_what_a_pending_write_has_to_list",
    ),
    mutation(
        "rows-say-which-partition-goes",
        "F467",
        "the partitions to delete are taken from rows without a look at their columns",
        j("StatementRules", "        if (names.isBlank()) {", "        if (names == null) {"),
        f"{CLEANS}::test_a_clean_leaves_the_folder_of_an_emptied_partition",
    ),
    mutation(
        "some-rows-are-all-rows",
        "F468 F165",
        "an aggregate over the rows before this one has the same value each time",
        j("RepeatablePlan", "                    || isOfSomeRows(one)\n"),
        "tests/tiers/hudi/test_recomputed.py::test_which_rows_come_out_otherwise",
    ),
    mutation(
        "one-read-stands-for-all",
        "F422 F369",
        "what a thread has read beside the read that a write names does not count",
        j("SnapshotCheck", ".and(own);", ".and(null);"),
        t("SnapshotMovedTest.whatTheThreadHasReadBesideTheOptionCounts"),
    ),
    mutation(
        "what-is-observed-is-the-statements",
        "F449",
        "what a statement observes counts for that statement alone",
        j("StatementRules", "if (rules.observes && !inner) {", "if (rules.observes && inner) {"),
        NOTED,
    ),
    mutation(
        "what-is-observed-is-forgotten",
        "F449",
        "a write is not compared with what an earlier statement has given to the program",
        j("TableReads", "        base = Base.both(base, carried);\n"),
        t("SnapshotMovedTest.whatAStatementGivesToItsProgramIsInTheProgramsHands"),
    ),
    mutation(
        "what-is-observed-makes-old-rows-new",
        "F88 F449",
        "what a statement gives to its program replaces what the program has read before",
        j(
            "TableReads",
            "            one.given = given;\n",
            "            one.given = lastHanded == null ? given : lastHanded;\n",
        ),
        t("SnapshotMovedTest.whatAStatementGivesToItsProgramReplacesNothing"),
    ),
    mutation(
        "what-was-observed-first-stays",
        "F446 F449",
        "what a statement has given to its program counts for ever",
        j(
            "TableReads",
            "mine.handed == null ? carried : mine.handed;",
            "Base.both(carried, mine.handed);",
        ),
        t("SnapshotMovedTest.whatAStatementGivesReplacesWhatEarlierOnesGave"),
    ),
    mutation(
        "what-is-observed-stays-with-its-thread",
        "F449",
        "what a statement gives to its program is in the hands of its thread alone",
        j("TableReads", "            add(mine, true, mine.handed);\n"),
        t("SnapshotMovedTest.whatAStatementGivesToItsProgramIsHandedToOtherThreads"),
    ),
    mutation(
        "subqueries-are-the-programs",
        "F450 F424",
        "what Spark plans in a thread of its own, for a look-up of the runtime, counts as a read of the program",
        j("TableReads", "scopes.get(LocalScope.get());", "scopes.get(null);"),
        NOTED,
    ),
    mutation(
        "every-statement-writes-this-table",
        "F402",
        "nobody asks which table a statement writes",
        j("OpenSessions", "statementBegins(session == own)", "statementBegins(true)"),
        NOTED,
    ),
    mutation(
        "non-blocking-past-the-wrapper",
        "I3",
        "in the non-blocking mode nobody asks for the storage wrapper",
        j(
            "EtcdLockProvider",
            "      CommitChecks.requireGuard(metaClient, session.basePath(), GuardedFileSystem.class);\n",
        ),
        t("NonBlockingTest.withoutTheStorageWrapperTheLockIsGivenBack"),
    ),
    mutation(
        "non-blocking-progress-is-not-compared",
        "I9 F5",
        "in the non-blocking mode nobody compares a writer's progress",
        j("EtcdLockProvider", '      CommitChecks.requireProgress(metaClient, props, session.inc(), "this commit");\n'),
        t("NonBlockingTest.progressThatMovedStopsTheCommit"),
    ),
    mutation(
        "non-blocking-refusal-keeps-the-lock",
        "I1",
        "a lock whose commit was refused is not given back",
        j("EtcdLockProvider", "            if (!good) {\n                unlock();\n            }\n", ""),
        t("NonBlockingTest.withoutTheStorageWrapperTheLockIsGivenBack"),
        t("NonBlockingTest.progressThatMovedStopsTheCommit"),
    ),
)
