package io.hudioperator.testing;

import io.hudioperator.timeline.DataFiles;
import io.hudioperator.timeline.FolderRules;
import io.hudioperator.timeline.Guarded;
import io.hudioperator.timeline.TimelineGuard;
import io.hudioperator.timeline.TimelinePath;
import java.io.IOException;
import java.util.EnumSet;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.MultipartUploaderBuilder;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The storage wrapper for {@code file:}, for which Hadoop expects a LocalFileSystem. For tests
 * only: no cluster keeps a table there.
 */
public class GuardedLocalFileSystem extends LocalFileSystem implements Guarded {

    @Override
    public FSDataOutputStream create(
            Path path,
            FsPermission permission,
            boolean overwrite,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress)
            throws IOException {
        return DataFiles.create(
                path,
                this,
                () -> TimelineGuard.create(
                        path,
                        this::listStatus,
                        () -> super.create(path, permission, overwrite, bufferSize, replication, blockSize, progress)));
    }

    @Override
    public FSDataOutputStream create(
            Path path,
            FsPermission permission,
            EnumSet<CreateFlag> flags,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress,
            Options.ChecksumOpt checksum)
            throws IOException {
        return DataFiles.create(
                path,
                this,
                () -> TimelineGuard.create(
                        path,
                        this::listStatus,
                        () -> super.create(
                                path, permission, flags, bufferSize, replication, blockSize, progress, checksum)));
    }

    @Override
    public FSDataOutputStream createNonRecursive(
            Path path,
            FsPermission permission,
            EnumSet<CreateFlag> flags,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress)
            throws IOException {
        return DataFiles.create(
                path,
                this,
                () -> TimelineGuard.create(
                        path,
                        this::listStatus,
                        () -> super.createNonRecursive(
                                path, permission, flags, bufferSize, replication, blockSize, progress)));
    }

    @Override
    @SuppressWarnings("deprecation")
    public FSDataOutputStream createNonRecursive(
            Path path,
            FsPermission permission,
            boolean overwrite,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress)
            throws IOException {
        return DataFiles.create(
                path,
                this,
                () -> TimelineGuard.create(
                        path,
                        this::listStatus,
                        () -> super.createNonRecursive(
                                path, permission, overwrite, bufferSize, replication, blockSize, progress)));
    }

    @Override
    protected FSDataOutputStream primitiveCreate(
            Path path,
            FsPermission permission,
            EnumSet<CreateFlag> flags,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress,
            Options.ChecksumOpt checksum)
            throws IOException {
        return DataFiles.create(
                path,
                this,
                () -> TimelineGuard.create(
                        path,
                        this::listStatus,
                        () -> super.primitiveCreate(
                                path, permission, flags, bufferSize, replication, blockSize, progress, checksum)));
    }

    @Override
    public FSDataOutputStreamBuilder<?, ?> createFile(Path path) {
        return TimelinePath.of(path) == null && !DataFiles.concerns(path)
                ? super.createFile(path)
                : createDataOutputStreamBuilder(this, path).create().overwrite(true);
    }

    @Override
    public FSDataOutputStream append(Path path, int bufferSize, Progressable progress) throws IOException {
        TimelineGuard.refuse("append", path);
        return super.append(path, bufferSize, progress);
    }

    @Override
    public void concat(Path target, Path[] sources) throws IOException {
        TimelineGuard.refuse("concat", target);
        super.concat(target, sources);
    }

    @Override
    public boolean truncate(Path path, long newLength) throws IOException {
        TimelineGuard.refuse("truncate", path);
        return super.truncate(path, newLength);
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
        FolderRules.beforeRename(from, to, this);
        return TimelineGuard.rename(from, to, this::listStatus, () -> {
            DataFiles.require(to, this);
            return super.rename(from, to);
        });
    }

    @Override
    protected void rename(Path from, Path to, Options.Rename... options) throws IOException {
        FolderRules.beforeRename(from, to, this);
        TimelineGuard.rename(from, to, this::listStatus, () -> {
            DataFiles.require(to, this);
            super.rename(from, to, options);
            return true;
        });
    }

    @Override
    public boolean mkdirs(Path path) throws IOException {
        return FolderRules.isDeferred(path) || super.mkdirs(path);
    }

    @Override
    public boolean mkdirs(Path path, FsPermission permission) throws IOException {
        return FolderRules.isDeferred(path) || super.mkdirs(path, permission);
    }

    @Override
    public boolean delete(Path path, boolean recursive) throws IOException {
        FolderRules.beforeDelete(path, recursive, this);
        return TimelineGuard.delete(path, () -> super.delete(path, recursive));
    }

    @Override
    public void copyFromLocalFile(boolean deleteSource, Path from, Path to) throws IOException {
        DataFiles.require(to, this);
        TimelineGuard.refuse("copyFromLocalFile", to);
        super.copyFromLocalFile(deleteSource, from, to);
    }

    @Override
    public Path startLocalOutput(Path to, Path temporary) throws IOException {
        TimelineGuard.refuse("startLocalOutput", to);
        return super.startLocalOutput(to, temporary);
    }

    @Override
    public void completeLocalOutput(Path to, Path temporary) throws IOException {
        TimelineGuard.refuse("completeLocalOutput", to);
        super.completeLocalOutput(to, temporary);
    }

    @Override
    public void createSymlink(Path target, Path link, boolean createParent) throws IOException {
        TimelineGuard.refuse("createSymlink", link);
        super.createSymlink(target, link, createParent);
    }

    @Override
    public MultipartUploaderBuilder createMultipartUploader(Path base) throws IOException {
        TimelineGuard.refuse("createMultipartUploader", base);
        return super.createMultipartUploader(base);
    }
}
