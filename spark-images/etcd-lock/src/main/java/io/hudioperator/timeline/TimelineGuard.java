package io.hudioperator.timeline;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.protocol.HeldLock;
import io.hudioperator.protocol.InstantProtocol;
import io.hudioperator.protocol.Publication;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * The rules for changing a timeline, in one place for every storage wrapper. They never restrict
 * reads, nor anything outside {@code .hoodie/timeline} and {@code
 * .hoodie/metadata/.hoodie/timeline}, except for {@link GivenUp} and {@code hoodie.properties}.
 */
public final class TimelineGuard {
    /** Lists a folder on the wrapped file system. */
    public interface Lister {
        FileStatus[] list(Path folder) throws IOException;
    }

    /** Asks another process to delete a file. */
    public interface Remover {
        boolean delete(Path path) throws IOException;
    }

    private static volatile Remover driver;

    private static final String META = ".hoodie";
    private static final String PROPERTIES = "hoodie.properties";

    private TimelineGuard() {}

    public static FSDataOutputStream create(Path path, Lister lister, StoreCall<FSDataOutputStream> create)
            throws IOException {
        TimelinePath target = TimelinePath.of(path);
        if (target == null) {
            GivenUp.requireNotBeating("create " + path, path);
            if (isProperties(path) && exists(path, lister)) {
                requireLockForProperties("create " + path, path);
            }
            Unanswered sent = Unanswered.ofProperties(path);
            // a cancelled task ends only after its uploads (F31)
            return new GuardedOutputStream(create.run(), sent::closing, sent::answered);
        }
        requireOwnTurn("create " + path, target, path);
        Publication publication = beforeWrite("create " + path, target, path, lister);
        Unanswered sent = publication == null ? Unanswered.of(target, path) : Unanswered.NONE;
        if (target.kind == TimelinePath.Kind.COMPLETED) {
            return new CompletedOutputStream(
                    path,
                    said -> {
                        if (!target.metadataTable) {
                            CommitRules.require(path, said);
                        }
                    },
                    () -> {
                        beforeWrite("close " + path, target, path, lister);
                        sent.closing();
                    },
                    create,
                    publication,
                    sent::answered);
        }
        return new GuardedOutputStream(
                create.run(),
                () -> {
                    recheckOnClose(target, path);
                    sent.closing();
                },
                sent::answered);
    }

    /**
     * On object stores the request is sent in close(), so a requested file is checked again there.
     */
    private static void recheckOnClose(TimelinePath target, Path path) throws IOException {
        if (target.kind == TimelinePath.Kind.REQUESTED && !target.metadataTable && !target.temporary) {
            session(target, path).instants().requireHeldNow("close " + path);
        }
    }

    public static boolean rename(Path from, Path to, Lister lister, StoreCall<Boolean> rename) throws IOException {
        TimelinePath source = TimelinePath.of(from);
        TimelinePath target = TimelinePath.of(to);
        requireNotContaining("rename " + from, from);
        requireNotContaining("rename to " + to, to);
        requireLockForProperties("rename " + from, from);
        if (isProperties(to) && exists(to, lister)) {
            requireLockForProperties("rename to " + to, to);
        }
        if (source == null && target == null) {
            return rename.run();
        }
        if (source != null) {
            beforeRemoval("rename " + from, source, from);
        }
        if (target != null) {
            requireOwnTurn("rename to " + to, target, to);
        }
        Publication publication = target == null ? null : beforeWrite("rename to " + to, target, to, lister);
        Unanswered sent =
                target != null && publication == null ? Unanswered.of(target, to) : Unanswered.ofProperties(to);
        boolean renamed = Uninterrupted.run(rename);
        if (renamed && publication != null) {
            publication.completed();
        }
        sent.answered();
        return renamed;
    }

    public static boolean delete(Path path, StoreCall<Boolean> delete) throws IOException {
        requireNotContaining("delete " + path, path);
        requireLockForProperties("delete " + path, path);
        TimelinePath target = TimelinePath.of(path);
        if (target != null) {
            Remover remover = driver;
            if (remover != null && OpenSessions.byPath(target.base) == null) {
                return remover.delete(path);
            }
            beforeRemoval("delete " + path, target, path);
        }
        return delete.run();
    }

    /**
     * In an executor: the driver deletes files of timelines, because only it has the session that
     * knows whether they may go. Hudi's archival deletes files of pending instants in tasks (F503).
     */
    public static void removedBy(Remover remover) {
        driver = remover;
    }

    /**
     * One file describes what a table is, and Hudi changes it under the lock. If it is missing, or
     * a program replaces it, no row of the table is visible (F91).
     */
    private static void requireLockForProperties(String what, Path path) throws TimelineRefusedException {
        Session session = isProperties(path)
                ? OpenSessions.byPath(path.getParent().getParent().toString())
                : null;
        if (session != null && session.isWriter()) {
            session.instants().requireHeldNow(what);
        }
    }

    private static boolean isProperties(Path path) {
        Path folder = path.getParent();
        return PROPERTIES.equals(path.getName())
                && folder != null
                && folder.getParent() != null
                && META.equals(folder.getName());
    }

    private static boolean exists(Path path, Lister lister) throws IOException {
        try {
            return Arrays.stream(lister.list(path.getParent()))
                    .anyMatch(status -> status.getPath().getName().equals(path.getName()));
        } catch (FileNotFoundException e) { // the folder does not exist yet
            return false;
        }
    }

    /** Refuses append, truncate and similar operations, which Hudi never uses on a timeline. */
    public static void refuse(String operation, Path path) throws TimelineRefusedException {
        if (TimelinePath.of(path) != null) {
            throw ErrorCode.NOT_OWNER.refusal(operation + " is not allowed on a timeline: " + path);
        }
    }

    /**
     * Returns the publication when the write completes an instant, otherwise null. Throws when the
     * write is not allowed.
     */
    private static Publication beforeWrite(String what, TimelinePath target, Path path, Lister lister)
            throws TimelineRefusedException {
        Session session = session(target, path);
        if (target.kind == TimelinePath.Kind.LEGACY) {
            throw ErrorCode.NOT_OWNER.refusal("only table version 9 is supported: " + what);
        }
        // The metadata table is written under the lock or as part of an own instant and has no
        // separate records. For a temporary file the rename is checked.
        if (target.metadataTable || target.temporary) {
            if (target.instant == null || !session.instants().ownsPending(target.instant)) {
                session.instants().requireHeldHere(what);
            }
            return null;
        }
        switch (target.kind) {
            case REQUESTED:
                session.instants().beforeRequested(target.instant, target.action);
                return null;
            case INFLIGHT:
                if (InstantProtocol.SAVEPOINT.equals(target.action)
                        && !session.instants().ownsSavepoint(target.instant)) {
                    // a savepoint has no requested file, where it would have been refused
                    throw ErrorCode.NOT_OWNER.refusal(
                            "only the table's agent may begin a savepoint, behind the closed gate: " + what);
                }
                if (!session.instants().ownsPending(target.instant)) {
                    session.instants().beforePendingOfOthers(what);
                }
                return null;
            case COMPLETED:
                if (InstantTime.BEGINNING.equals(target.instant)) {
                    session.instants().beforeBeginning(what);
                    return null;
                }
                return session.instants()
                        .beforeCompleted(
                                target.instant,
                                target.completion,
                                target.action,
                                () -> Uninterrupted.run(() -> length(path, lister)));
            default:
                session.instants().requireHeldNow(what);
                return null;
        }
    }

    /**
     * The thread that holds the lock writes the files that begin or complete an instant, and those
     * that complete an instant of the metadata table (F60).
     */
    private static void requireOwnTurn(String what, TimelinePath target, Path path) throws TimelineRefusedException {
        boolean begins = target.kind == TimelinePath.Kind.REQUESTED && !target.metadataTable;
        if (!target.temporary && (begins || target.kind == TimelinePath.Kind.COMPLETED)) {
            Session session = session(target, path);
            HeldLock lock = session.heldNow();
            if (session.isWriter() && lock != null && !lock.isHere()) {
                throw ErrorCode.NOT_OWNER.refusal("the lock of table " + session.tableId()
                        + " is held by another thread of this process: " + what);
            }
        }
    }

    private static void beforeRemoval(String what, TimelinePath target, Path path) throws TimelineRefusedException {
        Session session = session(target, path);
        boolean pendingFile = target.kind == TimelinePath.Kind.REQUESTED
                || target.kind == TimelinePath.Kind.INFLIGHT
                || target.temporary;
        if (pendingFile && target.instant != null && session.instants().ownsPending(target.instant)) {
            return;
        }
        if (target.metadataTable || target.temporary) {
            session.instants().requireHeldHere(what);
        } else if (target.kind == TimelinePath.Kind.COMPLETED) {
            session.instants().beforeCompletedRemoved(what);
        } else if (pendingFile) {
            session.instants().beforePendingOfOthers(what);
        } else {
            session.instants().requireHeldNow(what);
        }
    }

    /**
     * A folder that contains a timeline may be removed only as a whole metadata table, and only
     * under the lock.
     */
    private static void requireNotContaining(String what, Path path) throws TimelineRefusedException {
        for (Session session : OpenSessions.all()) {
            if (!TimelinePath.contains(path, session.basePath())) {
                continue;
            }
            if (!TimelinePath.isMetadataTable(path, session.basePath())) {
                throw ErrorCode.NOT_OWNER.refusal(
                        "the timeline of table " + session.tableId() + " is below this folder: " + what);
            }
            session.instants().requireHeldNow(what);
        }
    }

    /** A process writes only to tables for which it has a session. */
    private static Session session(TimelinePath target, Path path) throws TimelineRefusedException {
        Session session = OpenSessions.byPath(target.base);
        if (session == null) {
            throw ErrorCode.NOT_OWNER.refusal("this process has no session at the table of " + path);
        }
        return session;
    }

    private static long length(Path path, Lister lister) throws IOException {
        for (FileStatus status : lister.list(path.getParent())) {
            if (status.getPath().getName().equals(path.getName())) {
                return status.getLen();
            }
        }
        return -1;
    }
}
