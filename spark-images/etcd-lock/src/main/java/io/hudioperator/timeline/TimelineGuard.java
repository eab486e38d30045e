package io.hudioperator.timeline;

import io.hudioperator.contract.ErrorCode;
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
 * The rules for changing a timeline, in one place for every storage wrapper. Reading is never restricted, and neither is anything
 * outside {@code .hoodie/timeline} and {@code .hoodie/metadata/.hoodie/timeline}, but for {@link GivenUp} and {@code hoodie.properties}.
 */
public final class TimelineGuard {
  /** Lists a folder on the wrapped file system. */
  public interface Lister {
    FileStatus[] list(Path folder) throws IOException;
  }

  private static final String META = ".hoodie";
  private static final String PROPERTIES = "hoodie.properties";

  private TimelineGuard() {}

  public static FSDataOutputStream create(Path path, Lister lister, StoreCall<FSDataOutputStream> create) throws IOException {
    TimelinePath target = TimelinePath.of(path);
    if (target == null) {
      GivenUp.requireNotBeating("create " + path, path);
      if (isProperties(path) && exists(path, lister)) {
        requireLockForProperties("create " + path, path);
      }
      Unanswered sent = Unanswered.ofProperties(path);
      return new GuardedOutputStream(create.run(), sent::closing, sent::answered); // a task that is cancelled ends after its uploads (F31)
    }
    requireOwnTurn("create " + path, target, path);
    Publication publication = beforeWrite("create " + path, target, path, lister);
    Unanswered sent = publication == null ? Unanswered.of(target, path) : Unanswered.NONE;
    if (target.kind == TimelinePath.Kind.COMPLETED) {
      return new CompletedOutputStream(
          path,
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

  /** On object stores the request goes out in close(): a requested file is checked again there. */
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
    Unanswered sent = target != null && publication == null ? Unanswered.of(target, to) : Unanswered.ofProperties(to);
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
      beforeRemoval("delete " + path, target, path);
    }
    return delete.run();
  }

  /**
   * What a table is stands in one file, which Hudi changes under the lock. Without it, or with another one that a program has made of it, every row
   * is gone from sight (F91).
   */
  private static void requireLockForProperties(String what, Path path) throws TimelineRefusedException {
    Session session = isProperties(path) ? OpenSessions.byPath(path.getParent().getParent().toString()) : null;
    if (session != null && session.isWriter()) {
      session.instants().requireHeldNow(what);
    }
  }

  private static boolean isProperties(Path path) {
    Path folder = path.getParent();
    return PROPERTIES.equals(path.getName()) && folder != null && folder.getParent() != null && META.equals(folder.getName());
  }

  private static boolean exists(Path path, Lister lister) throws IOException {
    try {
      return Arrays.stream(lister.list(path.getParent())).anyMatch(status -> status.getPath().getName().equals(path.getName()));
    } catch (FileNotFoundException e) { // there is no folder yet
      return false;
    }
  }

  /** Appending, truncating and the like: Hudi never does that to a timeline. */
  public static void refuse(String operation, Path path) throws TimelineRefusedException {
    if (TimelinePath.of(path) != null) {
      throw ErrorCode.NOT_OWNER.refusal(operation + " is not allowed on a timeline: " + path);
    }
  }

  /** The publication when the write completes an instant, else null; throws when the write is not allowed. */
  private static Publication beforeWrite(String what, TimelinePath target, Path path, Lister lister) throws TimelineRefusedException {
    Session session = session(target, path);
    if (target.kind == TimelinePath.Kind.LEGACY) {
      throw ErrorCode.NOT_OWNER.refusal("only table version 9 is written here: " + what);
    }
    // The metadata table is written under the lock or as part of an own instant, it has no records of its own; of a temporary file the rename counts.
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
        if (InstantProtocol.SAVEPOINT.equals(target.action) && !session.instants().ownsSavepoint(target.instant)) { // it has no requested file that would have been refused
          throw ErrorCode.NOT_OWNER.refusal("a savepoint is begun by the table's agent behind the closed gate: " + what);
        }
        if (!session.instants().ownsPending(target.instant)) {
          session.instants().requireHeldNow(what);
        }
        return null;
      case COMPLETED:
        return session.instants().beforeCompleted(target.instant, target.completion, target.action, () -> length(path, lister));
      default:
        session.instants().requireHeldNow(what);
        return null;
    }
  }

  /** The files that begin or complete an instant, and those that complete one of the metadata table, are written by the thread that has the lock (F60). */
  private static void requireOwnTurn(String what, TimelinePath target, Path path) throws TimelineRefusedException {
    boolean begins = target.kind == TimelinePath.Kind.REQUESTED && !target.metadataTable;
    if (!target.temporary && (begins || target.kind == TimelinePath.Kind.COMPLETED)) {
      Session session = session(target, path);
      HeldLock lock = session.heldNow();
      if (session.isWriter() && lock != null && !lock.isHere()) {
        throw ErrorCode.NOT_OWNER.refusal("the lock of table " + session.tableId() + " is held by another thread of this process: " + what);
      }
    }
  }

  private static void beforeRemoval(String what, TimelinePath target, Path path) throws TimelineRefusedException {
    Session session = session(target, path);
    boolean pendingFile = target.kind == TimelinePath.Kind.REQUESTED || target.kind == TimelinePath.Kind.INFLIGHT || target.temporary;
    if (pendingFile && target.instant != null && session.instants().ownsPending(target.instant)) {
      return;
    }
    if (target.metadataTable || target.temporary) {
      session.instants().requireHeldHere(what);
    } else if (target.kind == TimelinePath.Kind.COMPLETED) {
      session.instants().beforeCompletedRemoved(what);
    } else {
      session.instants().requireHeldNow(what);
    }
  }

  /** A folder that holds a timeline goes only as a whole metadata table, and only under the lock. */
  private static void requireNotContaining(String what, Path path) throws TimelineRefusedException {
    for (Session session : OpenSessions.all()) {
      if (!TimelinePath.contains(path, session.basePath())) {
        continue;
      }
      if (!TimelinePath.isMetadataTable(path, session.basePath())) {
        throw ErrorCode.NOT_OWNER.refusal("the timeline of table " + session.tableId() + " lies below: " + what);
      }
      session.instants().requireHeldNow(what);
    }
  }

  /** A process writes only tables that it has a session at. */
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
