package io.hudioperator;

import com.fasterxml.jackson.databind.node.ArrayNode;
import io.hudioperator.contract.Json;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hudi.storage.StoragePathInfo;

/**
 * Listings for Python. Each element of a Java array costs py4j several round trips, so the whole
 * listing is returned as one string. The string is JSON of the fields: the output of {@code
 * toString()} in Hadoop and Hudi is not a stable format, and a file name may contain any text.
 */
public final class Listings {
    private Listings() {}

    /**
     * Returns {@code [[path, isFolder, bytes], …]} in the order of the listing; a folder has 0
     * bytes. {@code statuses} is an array of FileStatus or of a subclass; py4j passes such an array
     * only to a parameter of type Object.
     */
    public static String ofStatuses(Object statuses) {
        ArrayNode all = Json.array();
        for (FileStatus status : (FileStatus[]) statuses) {
            add(all, status.getPath().toString(), status.isDirectory(), status.getLen());
        }
        return all.toString();
    }

    /**
     * Returns {@code [[path, isFolder, bytes, modified], …]}: the same, with the time of each
     * one's last change in milliseconds.
     */
    public static String ofDatedStatuses(Object statuses) {
        ArrayNode all = Json.array();
        for (FileStatus status : (FileStatus[]) statuses) {
            add(all, status.getPath().toString(), status.isDirectory(), status.getLen())
                    .add(status.getModificationTime());
        }
        return all.toString();
    }

    /** The same for folders as Hudi's metadata table lists them. */
    public static String ofFolders(Map<String, List<StoragePathInfo>> folders) {
        ArrayNode all = Json.array();
        for (List<StoragePathInfo> folder : folders.values()) {
            for (StoragePathInfo info : folder) {
                add(all, info.getPath().toString(), info.isDirectory(), info.getLength());
            }
        }
        return all.toString();
    }

    private static ArrayNode add(ArrayNode all, String path, boolean folder, long bytes) {
        return all.addArray().add(path).add(folder).add(folder ? 0 : bytes);
    }
}
