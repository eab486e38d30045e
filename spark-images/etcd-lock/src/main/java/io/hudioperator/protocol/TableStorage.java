package io.hudioperator.protocol;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.Json;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.storage.HoodieStorageUtils;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

/**
 * Access of the lock to the table's storage: the marker that names its authority, and the latest
 * time on its timeline.
 */
public final class TableStorage {
    private static final Pattern TIMES = Pattern.compile("(\\d{14,17})(?:_(\\d{14,17}))?\\..*");
    private static final String MARKERS = ".hoodie/hudi-operator";

    private final Path base;
    private final Configuration conf;

    public TableStorage(String basePath, Configuration conf) {
        this.base = new Path(basePath);
        this.conf = conf;
    }

    /**
     * Creates or compares the marker of the lock authority. The first process at a table creates
     * it. A different marker means that another etcd, prefix or table id also gives out a lock for
     * this table, so there would be two locks (F10). Called with the lock held.
     *
     * @return false when there is no table yet, so nothing was checked
     */
    public boolean verifyAuthority(String tableId, String clusterId, String prefix, String authority)
            throws IOException {
        FileSystem fs = base.getFileSystem(conf);
        if (!fs.exists(new Path(base, ".hoodie"))) {
            return false;
        }
        Path folder = new Path(base, MARKERS);
        Path mine = new Path(folder, tableId);
        String content = Json.object()
                .put("clusterId", clusterId)
                .put("prefix", prefix)
                .put("authority", authority)
                .put("tableId", tableId)
                .toString();
        boolean found = false;
        for (FileStatus status : list(fs, folder)) {
            String name = status.getPath().getName();
            if (name.startsWith(".")) {
                continue; // checksum files of local file systems, and unfinished markers
            }
            if (!name.equals(tableId)) {
                throw ErrorCode.OTHER_AUTHORITY.exception(
                        base + " is marked as table " + name + ", not as table " + tableId);
            }
            found = true;
        }
        if (!found && create(fs, mine, content)) {
            return true;
        }
        JsonNode marker = Json.parse(read(fs, mine));
        for (String field : new String[] {"clusterId", "prefix", "authority", "tableId"}) {
            String theirs = Json.text(marker, field);
            String ours = Json.text(Json.parse(content), field);
            if (!theirs.equals(ours)) {
                throw ErrorCode.OTHER_AUTHORITY.exception(
                        base + " is locked by another authority: " + field + " is " + theirs + ", here it is " + ours);
            }
        }
        return true;
    }

    /**
     * Creates the marker; returns false when it exists. On a store where a file is visible as soon
     * as it is created, the marker is renamed into place, so that no crash leaves an empty one
     * (F66).
     */
    private boolean create(FileSystem fs, Path path, String content) throws IOException {
        boolean renames = renames(base, conf);
        Path first = renames ? new Path(path.getParent(), "." + path.getName() + "." + UUID.randomUUID()) : path;
        try (OutputStream out = fs.create(first, false)) {
            out.write(content.getBytes(StandardCharsets.UTF_8));
        } catch (FileAlreadyExistsException e) {
            return false;
        }
        return !renames || fs.rename(first, path);
    }

    /** Whether Hudi first writes a file there under another name, and then renames it. */
    public static boolean renames(Path base, Configuration conf) {
        return HoodieStorageUtils.getStorage(new StoragePath(base.toString()), new HadoopStorageConfiguration(conf))
                .needCreateTempFile();
    }

    private static String read(FileSystem fs, Path path) throws IOException {
        try (FSDataInputStream in = fs.open(path)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private static FileStatus[] list(FileSystem fs, Path folder) throws IOException {
        try {
            return fs.listStatus(folder);
        } catch (FileNotFoundException e) {
            return new FileStatus[0];
        }
    }

    /**
     * The largest instant or completion time on the active timeline; {@link InstantTime#NONE} when
     * there is none.
     */
    public String latestTime() throws IOException {
        String latest = InstantTime.NONE;
        for (FileStatus status : list(base.getFileSystem(conf), new Path(base, ".hoodie/timeline"))) {
            Matcher m = TIMES.matcher(status.getPath().getName());
            if (m.matches()) {
                latest = InstantTime.max(latest, m.group(1));
                if (m.group(2) != null) {
                    latest = InstantTime.max(latest, m.group(2));
                }
            }
        }
        return latest;
    }
}
