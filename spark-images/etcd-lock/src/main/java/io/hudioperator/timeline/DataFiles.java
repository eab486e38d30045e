package io.hudioperator.timeline;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TablePath;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.session.OpenSessions;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Folders in which files of a write may be created. Hudi builds the path of a data file from values
 * of rows, and Hadoop resolves {@code ..} in it, so a file could land outside the table or in the
 * metadata table. Tasks of executors write these files; they know the table from the configuration.
 */
public final class DataFiles {
    /**
     * Base path of the table that this process writes, for processes without a session (executors).
     */
    static final String TABLE_PATH = "hudi.operator.guard.path";

    private static final String INSTANT = "_\\d{14,20}";
    private static final Pattern DATA = Pattern.compile("[^.].*_\\d+-\\d+-\\d+" + INSTANT + "\\.\\w+|\\..+" + INSTANT
            + "\\.log\\.\\d+(?:_\\d+-\\d+-\\d+)?(?:\\.cdc)?");
    private static final String OF_PARTITION = ".hoodie_partition_metadata";
    private static final Pattern PARTITION = Pattern.compile("\\.hoodie_partition_metadata.*");
    private static final Pattern MARKER = Pattern.compile(".+\\.marker\\.(?:CREATE|APPEND|MERGE)");
    private static final Pattern MARKERS = Pattern.compile("\\.hoodie/(?:metadata/\\.hoodie/)?\\.temp/\\d{14,20}/.+");
    private static final Pattern METADATA_TABLE = Pattern.compile("\\.hoodie/metadata/[^/.][^/]*/[^/]+");
    private static final Pattern OF_THE_TABLE_ITSELF =
            Pattern.compile("\\.?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}.*|.+\\.parquet");

    /**
     * Partitions that have no other one in their way. It stays so: a later creator of another one
     * finds the metadata of this one.
     */
    private static final Set<String> APART = ConcurrentHashMap.newKeySet();

    private static final int MAX_APART = 100_000;

    private DataFiles() {}

    /**
     * Creates a file by this call, when {@link #require} allows it. The data files of programs are
     * also read when they are closed ({@link ProgramFiles}).
     */
    public static FSDataOutputStream create(Path path, FileSystem fs, StoreCall<FSDataOutputStream> create)
            throws IOException {
        require(path, fs);
        FSDataOutputStream stream = create.run();
        if (!DATA.matcher(path.getName()).matches()) {
            return stream;
        }
        String file = TablePath.comparable(path.toString());
        for (String base : bases(fs.getConf())) {
            if (file.startsWith(base + "/") && !file.startsWith(base + "/.hoodie/")) {
                return ProgramFiles.watched(base, path, fs, stream);
            }
        }
        return stream;
    }

    /**
     * Throws when a data file, a log file, a marker or a partition's metadata is about to be
     * created outside the table that this process writes, or where this process must not write in
     * it. Also throws when a file with any other name is about to be created among the data of that
     * table (F78): readers and services would treat it as part of the table, whatever saved it. A
     * process that knows no table is not restricted to one.
     */
    public static void require(Path path, FileSystem fs) throws IOException {
        if (!isNamedByHudi(path)) {
            requireNotAmongData(path);
            return;
        }
        List<String> bases = bases(fs.getConf());
        String file = TablePath.comparable(path.toString());
        for (String base : bases) {
            if (file.startsWith(base + "/")) {
                requireBelow(file.substring(base.length() + 1), path);
                requirePartition(base, file.substring(base.length() + 1), path);
                requireBesideOthers(base, path, fs);
                return;
            }
        }
        if (!bases.isEmpty()) {
            throw ErrorCode.BAD_DATA.refusal(
                    "the partition of a row points outside the table " + String.join(", ", bases) + ": " + path);
        }
    }

    /** Whether there is a rule for a file of that name in that folder. */
    public static boolean concerns(Path path) {
        return isNamedByHudi(path) || FolderRules.isWrittenHere(path);
    }

    private static void requireNotAmongData(Path path) throws TimelineRefusedException {
        // the table's own folder as the target of a copy: the file goes into it (F283)
        boolean among = FolderRules.isWrittenHere(path) || FolderRules.isWrittenHere(new Path(path, "any"));
        if (among && !path.toString().contains("/.hoodie/")) {
            throw ErrorCode.STATEMENT.refusal("only Hudi writes files into a table's folder: " + path
                    + "; save them elsewhere (docs/use/what-user-code-may-do.md)");
        }
    }

    /** Whether the name is that of a data file, a log file, a marker or a partition's metadata. */
    private static boolean isNamedByHudi(Path path) {
        String name = path.getName();
        return DATA.matcher(name).matches()
                || MARKER.matcher(name).matches()
                || PARTITION.matcher(name).matches();
    }

    private static void requireBelow(String relative, Path path) throws TimelineRefusedException {
        boolean allowed;
        if (MARKER.matcher(path.getName()).matches()) {
            allowed = MARKERS.matcher(relative).matches();
        } else if (relative.startsWith(".hoodie/")) {
            allowed = METADATA_TABLE.matcher(relative).matches()
                    && !OF_THE_TABLE_ITSELF.matcher(path.getName()).matches();
        } else {
            allowed = true;
        }
        if (!allowed) {
            throw ErrorCode.BAD_DATA.refusal("the partition of a row points into a folder that Hudi reserves: " + path);
        }
    }

    /** Markers have the partition's path, too; the partition's metadata comes before them. */
    private static void requirePartition(String base, String relative, Path path) throws TimelineRefusedException {
        if (relative.contains("/") && !relative.startsWith(".hoodie/")) {
            ProgramFiles.requirePartition(base, relative.substring(0, relative.lastIndexOf('/')), path);
        }
    }

    /**
     * Refuses a partition in the folder of another one ({@code a/b} in {@code a}, F100). A listing
     * of folders does not search a partition for further partitions, so a rebuilt metadata table
     * would permanently omit its rows.
     *
     * <p>A partition's metadata is looked at before it is created, so that a refusal leaves nothing
     * behind, and again before the first data file in it: of two writers that create both at once,
     * neither sees the other's before, but at least one does afterwards (F171). A writer that finds
     * the metadata of a partition that was never committed checks again, too.
     */
    private static void requireBesideOthers(String base, Path file, FileSystem fs) throws IOException {
        Path folder = file.getParent();
        String name = TablePath.comparable(folder.toString());
        if (name.equals(base) || name.startsWith(base + "/.hoodie/")) {
            return;
        }
        if (PARTITION.matcher(file.getName()).matches()) {
            requireNoOther(base, folder, fs);
        } else if (DATA.matcher(file.getName()).matches() && FolderRules.isWrittenHere(file) && !APART.contains(name)) {
            requireNoOther(base, folder, fs);
            if (APART.size() < MAX_APART) {
                APART.add(name);
            }
        }
    }

    private static void requireNoOther(String base, Path folder, FileSystem fs) throws IOException {
        for (Path above = folder.getParent();
                TablePath.comparable(above.toString()).startsWith(base + "/");
                above = above.getParent()) {
            if (fs.exists(new Path(above, OF_PARTITION))) {
                throw nested(folder, above);
            }
        }
        try {
            for (FileStatus child : fs.listStatus(folder)) {
                if (child.isDirectory() && !child.getPath().getName().startsWith(".")) {
                    throw nested(child.getPath(), folder);
                }
            }
        } catch (FileNotFoundException e) {
            return; // a new partition on an object store
        }
    }

    private static TimelineRefusedException nested(Path inner, Path outer) {
        return ErrorCode.BAD_DATA.refusal("the folder " + inner + " lies in " + outer
                + ", which is a partition: no value of a partition column may be another value followed by / and more");
    }

    private static List<String> bases(Configuration conf) {
        List<String> bases = new ArrayList<>();
        String configured = conf.get(TABLE_PATH, "");
        if (!configured.isEmpty()) {
            bases.add(TablePath.comparable(configured));
        }
        OpenSessions.all().forEach(session -> bases.add(TablePath.comparable(session.basePath())));
        return bases;
    }
}
