package io.hudioperator;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.List;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieActiveTimeline;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.util.MarkerUtils;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieEarlyConflictDetectionException;
import org.apache.hudi.exception.HoodieIOException;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.StoragePathInfo;
import org.apache.hudi.table.marker.SimpleDirectMarkerBasedDetectionStrategy;

/**
 * Each task asks this before it writes a file of a file group: does an earlier write that is still
 * pending have a marker for the same file group? If so, this write stops. Fairness only; safety
 * does not depend on it: two writes that look at the same moment do not see each other, and Hudi's
 * check at the commit decides.
 *
 * <p>Hudi's own strategy does not say whose marker it found, treats markers of a commit that has
 * just completed as a conflict, and fails when the folder of markers does not exist (an object
 * store has no empty folders).
 */
public final class EarlyConflictDetection extends SimpleDirectMarkerBasedDetectionStrategy {
    private final String basePath;
    private final HoodieTimeline pending;
    private final long heartbeatMillis;
    private String other = "";

    public EarlyConflictDetection(
            HoodieStorage storage,
            String partitionPath,
            String fileId,
            String instantTime,
            HoodieActiveTimeline activeTimeline,
            HoodieWriteConfig config) {
        super(storage, partitionPath, fileId, instantTime, activeTimeline, config);
        basePath = config.getBasePath();
        pending = activeTimeline.filterInflightsAndRequested();
        heartbeatMillis =
                config.getHoodieClientHeartbeatIntervalInMs() * config.getHoodieClientHeartbeatTolerableMisses();
    }

    @Override
    public boolean hasMarkerConflict() {
        StoragePath folder = new StoragePath(basePath, HoodieTableMetaClient.TEMPFOLDER_NAME);
        try {
            List<StoragePath> all = MarkerUtils.getAllMarkerDir(folder, storage);
            for (String markers : MarkerUtils.getCandidateInstants(
                    activeTimeline, all, instantTime, heartbeatMillis, storage, basePath)) {
                String instant = MarkerUtils.markerDirToInstantTime(markers);
                if (pending.containsInstant(instant) && hasMarker(new StoragePath(markers))) {
                    other = instant;
                    return true;
                }
            }
            return false;
        } catch (FileNotFoundException e) {
            return false; // no write has a marker
        } catch (IOException e) {
            throw new HoodieIOException("cannot list the markers of other writers", e);
        }
    }

    private boolean hasMarker(StoragePath markers) throws IOException {
        StoragePath folder =
                partitionPath == null || partitionPath.isEmpty() ? markers : new StoragePath(markers, partitionPath);
        try {
            for (StoragePathInfo marker : storage.listDirectEntries(folder)) {
                if (marker.getPath().getName().contains(fileId)) {
                    return true;
                }
            }
            return false;
        } catch (FileNotFoundException e) {
            return false; // no marker in this partition, or that write has just ended
        }
    }

    /** The runtime parses this message (hudi_runtime/process/errors.py). */
    @Override
    public void resolveMarkerConflict(String base, String partition, String file) {
        String group = partitionPath == null || partitionPath.isEmpty() ? fileId : partitionPath + "/" + fileId;
        throw new HoodieEarlyConflictDetectionException("Write conflict: instant " + instantTime + " stops, because "
                + other + ", which began earlier, is changing the same file group: " + group);
    }
}
