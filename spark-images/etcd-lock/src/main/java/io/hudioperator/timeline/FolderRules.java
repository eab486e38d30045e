package io.hudioperator.timeline;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TablePath;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/**
 * Folders that nobody may delete or move, also enforced in JVMs without a session: Hudi deletes a
 * table's folders in Spark tasks, and an executor has no session (F33). The Spark plugin tells a
 * writer's executor about its driver's table.
 */
public final class FolderRules {
    private static final String META = ".hoodie";
    private static final String INSIDE = "/" + META + "/";
    private static final String METADATA_TABLE = "/" + META + "/metadata";
    /** Maximum number of listings of a folder that changes meanwhile. */
    private static final int LISTINGS = 5;
    /** Base paths of the tables that this JVM writes as a writer's executor. */
    private static final Set<String> WRITTEN = ConcurrentHashMap.newKeySet();

    private FolderRules() {}

    /** This JVM is an executor of a writer of that table. */
    public static void executorOfWriter(String basePath) {
        WRITTEN.add(TablePath.comparable(basePath));
    }

    public static void beforeDelete(Path named, boolean recursive, FileSystem fs) throws IOException {
        Path path = plain(named);
        String what = "delete " + path;
        requireNoTable(what, path);
        if (!recursive || isInside(path) || !isFolder(path, fs)) {
            return;
        }
        requireNoTableBelow(what, path, fs);
        if (isWrittenHere(path)) {
            throw refusal("a writer may not delete a folder of its table; the table's agent cleans up what it wrote: "
                    + what);
        }
    }

    public static void beforeRename(Path source, Path target, FileSystem fs) throws IOException {
        Path from = plain(source);
        Path to = plain(target);
        String what = "rename " + from + " to " + to;
        requireNoTable(what, from);
        requireNoTable(what, to);
        if (!isInside(from) && isFolder(from, fs)) {
            requireNoTableBelow(what, from, fs);
        }
    }

    /**
     * Whether creation of this folder is deferred until its first file is written: below a table
     * that this process writes, outside {@code .hoodie}. Hudi creates the folder of each file that
     * it writes there. Other code (a job's {@code _temporary}) is refused its files and would leave
     * empty folders: a folder inside a partition hides that partition from readers that list
     * folders, and {@link DataFiles} would refuse every later file in it (F214).
     */
    public static boolean isDeferred(Path named) {
        Path path = plain(named);
        return isWrittenHere(path) && !isInside(path) && !META.equals(path.getName());
    }

    /** The path without the trailing slash that it keeps when it was made from a URI. */
    private static Path plain(Path path) {
        return new Path(path.toString());
    }

    /**
     * Refuses {@code .hoodie}, and the metadata table when this process has no session for its
     * table.
     */
    private static void requireNoTable(String what, Path path) throws TimelineRefusedException {
        String text = path.toString();
        boolean metadataTable = text.endsWith(METADATA_TABLE) || text.endsWith(METADATA_TABLE + "/" + META);
        if (metadataTable) {
            String base = text.substring(0, text.lastIndexOf(METADATA_TABLE));
            if (OpenSessions.byPath(base) == null) {
                throw refusal("this process has no session at the table: " + what);
            }
        } else if (META.equals(path.getName())) {
            throw refusal("nobody may delete or move a table's timeline: " + what);
        }
    }

    private static void requireNoTableBelow(String what, Path path, FileSystem fs) throws IOException {
        String outer = TablePath.comparable(path.toString()) + "/";
        boolean written = WRITTEN.stream().anyMatch(base -> (base + "/").startsWith(outer));
        if (written || hasTable(path, fs)) {
            throw refusal("the folder contains a Hudi table; delete its HudiTable first, then the folder: " + what);
        }
    }

    /**
     * However deep: a database, or a job's output, may be folders above its tables (F502). Asked
     * by one flat listing, which object stores answer a thousand files at a time: a table has a
     * file in {@code .hoodie} from its first moment.
     */
    private static boolean hasTable(Path named, FileSystem fs) throws IOException {
        Path folder = fs.makeQualified(named);
        for (int attempt = 1; ; attempt++) {
            try {
                return hasTable(folder, fs.listFiles(folder, true));
            } catch (FileNotFoundException e) {
                // Another thread or process deletes there, which deletion itself tolerates.
                if (!fs.exists(folder)) {
                    return false;
                }
                if (attempt == LISTINGS) {
                    throw e;
                }
            }
        }
    }

    private static boolean hasTable(Path folder, RemoteIterator<LocatedFileStatus> files) throws IOException {
        while (files.hasNext()) {
            Path parent = files.next().getPath().getParent();
            for (; parent != null && !parent.equals(folder); parent = parent.getParent()) {
                if (META.equals(parent.getName())) {
                    return true;
                }
            }
        }
        return false;
    }

    @SuppressWarnings("deprecation") // false when the path does not exist, where getFileStatus throws
    private static boolean isFolder(Path path, FileSystem fs) throws IOException {
        return fs.isDirectory(path);
    }

    private static boolean isInside(Path path) {
        return path.toString().contains(INSIDE);
    }

    /**
     * Whether the path is below a table that this process writes as a writer or as a writer's
     * executor.
     */
    static boolean isWrittenHere(Path path) {
        String text = TablePath.comparable(path.toString());
        return WRITTEN.stream().anyMatch(base -> text.startsWith(base + "/"))
                || OpenSessions.all().stream()
                        .filter(Session::isWriter)
                        .anyMatch(s -> text.startsWith(TablePath.comparable(s.basePath()) + "/"));
    }

    /** Whether this process is a writer's driver or executor. */
    public static boolean isOfWriter() {
        return !WRITTEN.isEmpty() || OpenSessions.hasWriter();
    }

    private static TimelineRefusedException refusal(String detail) {
        return ErrorCode.NOT_OWNER.refusal(detail);
    }
}
