package io.hudioperator.timeline;

import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.protocol.HeldLock;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import org.apache.hadoop.fs.Path;

/**
 * A file of the table's metadata that completes no instant of the table: the archived timeline and
 * its version, {@code hoodie.properties}, instants of the metadata table. If it was sent under the
 * lock and had no answer, it may land later and overwrite what the next owner has written (F37), so
 * the release waits for the drain.
 */
final class Unanswered {
    /** A file for which nothing waits. */
    static final Unanswered NONE = new Unanswered(null, "", false);

    private static final String PROPERTIES = "hoodie.properties";

    private final HeldLock lock;
    private final String file;
    private final boolean needsLock;

    private Unanswered(HeldLock lock, String file, boolean needsLock) {
        this.lock = lock;
        this.file = file;
        this.needsLock = needsLock;
    }

    /** A file of a timeline is about to be opened or renamed into place. */
    static Unanswered of(TimelinePath target, Path path) {
        boolean pendingFile = target.kind == TimelinePath.Kind.REQUESTED || target.kind == TimelinePath.Kind.INFLIGHT;
        if (target.temporary || pendingFile && !target.metadataTable) {
            // for a temporary file the rename counts; a pending instant is settled (I7)
            return NONE;
        }
        Session session = OpenSessions.byPath(target.base);
        return session == null
                ? NONE
                : begun(
                        session,
                        path,
                        target.instant == null || !session.instants().ownsPending(target.instant));
    }

    /** {@code hoodie.properties} or its backup; {@link #NONE} for any other file. */
    static Unanswered ofProperties(Path path) {
        Path folder = path.getParent();
        if (!path.getName().startsWith(PROPERTIES)
                || folder == null
                || folder.getParent() == null
                || !".hoodie".equals(folder.getName())) {
            return NONE;
        }
        Session session = OpenSessions.byPath(folder.getParent().toString());
        return session == null ? NONE : begun(session, path, false);
    }

    private static Unanswered begun(Session session, Path path, boolean needsLock) {
        HeldLock lock = session.heldNow();
        return lock != null && lock.sends(path.toString()) ? new Unanswered(lock, path.toString(), needsLock) : NONE;
    }

    /**
     * The request is about to be sent. Refuses it when it needed the lock under which it was opened
     * and that lock is being released.
     */
    void closing() throws TimelineRefusedException {
        if (needsLock) {
            lock.requireOpen();
        }
    }

    /** The store has acknowledged the file. */
    void answered() {
        if (lock != null) {
            lock.answered(file);
        }
    }
}
