package io.hudioperator;

import com.fasterxml.jackson.databind.node.ArrayNode;
import io.hudioperator.contract.Json;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hudi.storage.StoragePathInfo;

/**
 * Listings for Python. An element of a Java array costs py4j several round trips, so all elements come in one text. It is JSON of their
 * fields: how Hadoop and Hudi print them is no contract, and a name may look like a part of it.
 */
public final class Listings {
  private Listings() {}

  /**
   * {@code [[path, isFolder, bytes], …]} in the order of the listing; a folder has 0 bytes. {@code statuses} is an array of FileStatus or of a
   * subclass, which py4j passes to a parameter of type Object alone.
   */
  public static String ofStatuses(Object statuses) {
    ArrayNode all = Json.array();
    for (FileStatus status : (FileStatus[]) statuses) {
      add(all, status.getPath().toString(), status.isDirectory(), status.getLen());
    }
    return all.toString();
  }

  /** The same of folders as Hudi's metadata table lists them. */
  public static String ofFolders(Map<String, List<StoragePathInfo>> folders) {
    ArrayNode all = Json.array();
    for (List<StoragePathInfo> folder : folders.values()) {
      for (StoragePathInfo info : folder) {
        add(all, info.getPath().toString(), info.isDirectory(), info.getLength());
      }
    }
    return all.toString();
  }

  private static void add(ArrayNode all, String path, boolean folder, long bytes) {
    all.addArray().add(path).add(folder).add(folder ? 0 : bytes);
  }
}
