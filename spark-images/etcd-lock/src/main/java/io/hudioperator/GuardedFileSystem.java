package io.hudioperator;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.timeline.DataFiles;
import io.hudioperator.timeline.FolderRules;
import io.hudioperator.timeline.Guarded;
import io.hudioperator.timeline.TimelineGuard;
import io.hudioperator.timeline.TimelinePath;
import io.hudioperator.workarounds.ClosingInLineFileSystem;
import java.io.IOException;
import java.net.URI;
import java.util.EnumSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.MultipartUploaderBuilder;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The storage wrapper for any scheme ({@code fs.<scheme>.impl}): every call that can change a
 * timeline passes {@link TimelineGuard}. A write option or a {@code SET} in user code cannot bypass
 * it.
 */
public class GuardedFileSystem extends FilterFileSystem implements Guarded {
    private static final String DELEGATE = "hudi.operator.guard.%s.delegate";
    private static final String S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem";

    @Override
    public void initialize(URI name, Configuration conf) throws IOException {
        String key = String.format(DELEGATE, name.getScheme());
        String delegate = conf.get(key, "s3a".equals(name.getScheme()) ? S3A : null);
        if (delegate == null) {
            throw new IOException(ErrorCode.NO_GUARD.message(
                    key + " is not set: it must name the file system that the wrapper delegates to"));
        }
        try {
            fs = conf.getClassByName(delegate)
                    .asSubclass(FileSystem.class)
                    .getDeclaredConstructor()
                    .newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IOException(ErrorCode.NO_GUARD.message("cannot create " + delegate + " (" + key + ")"), e);
        }
        fs.initialize(name, conf);
        super.initialize(name, conf);
        ClosingInLineFileSystem.serve(name.getAuthority(), conf);
    }

    @Override
    public String getScheme() {
        return fs.getScheme();
    }

    // Delegated because object stores need fewer requests for these than FileSystem's defaults.

    @Override
    public RemoteIterator<LocatedFileStatus> listFiles(Path path, boolean recursive) throws IOException {
        return fs.listFiles(path, recursive);
    }

    @Override
    public boolean exists(Path path) throws IOException {
        return fs.exists(path);
    }

    @Override
    @SuppressWarnings("deprecation")
    public boolean isDirectory(Path path) throws IOException {
        return fs.isDirectory(path);
    }

    @Override
    @SuppressWarnings("deprecation")
    public boolean isFile(Path path) throws IOException {
        return fs.isFile(path);
    }

    @Override
    public ContentSummary getContentSummary(Path path) throws IOException {
        return fs.getContentSummary(path);
    }

    // Calls that can change a timeline.

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
                        fs::listStatus,
                        () -> fs.create(path, permission, overwrite, bufferSize, replication, blockSize, progress)));
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
                        fs::listStatus,
                        () -> fs.create(
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
                        fs::listStatus,
                        () -> fs.createNonRecursive(
                                path, permission, flags, bufferSize, replication, blockSize, progress)));
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
                        fs::listStatus,
                        () -> super.primitiveCreate(
                                path, permission, flags, bufferSize, replication, blockSize, progress, checksum)));
    }

    /**
     * On a timeline the builder ends in {@link #create}. Elsewhere it is the delegate's own
     * builder, with its options.
     */
    @Override
    public FSDataOutputStreamBuilder<?, ?> createFile(Path path) {
        return TimelinePath.of(path) == null && !DataFiles.concerns(path)
                ? fs.createFile(path)
                : createDataOutputStreamBuilder(this, path).create().overwrite(true);
    }

    @Override
    public FSDataOutputStreamBuilder<?, ?> appendFile(Path path) {
        return TimelinePath.of(path) == null
                ? fs.appendFile(path)
                : createDataOutputStreamBuilder(this, path).append();
    }

    @Override
    public boolean createNewFile(Path path) throws IOException {
        return TimelinePath.of(path) == null && !DataFiles.concerns(path)
                ? fs.createNewFile(path)
                : super.createNewFile(path);
    }

    @Override
    public FSDataOutputStream append(Path path, int bufferSize, Progressable progress) throws IOException {
        TimelineGuard.refuse("append", path);
        return fs.append(path, bufferSize, progress);
    }

    @Override
    public void concat(Path target, Path[] sources) throws IOException {
        TimelineGuard.refuse("concat", target);
        for (Path source : sources) {
            TimelineGuard.refuse("concat", source);
        }
        fs.concat(target, sources);
    }

    @Override
    public boolean truncate(Path path, long newLength) throws IOException {
        TimelineGuard.refuse("truncate", path);
        return fs.truncate(path, newLength);
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
        FolderRules.beforeRename(from, to, fs);
        return TimelineGuard.rename(from, to, fs::listStatus, () -> {
            DataFiles.require(to, this);
            return fs.rename(from, to);
        });
    }

    @Override
    protected void rename(Path from, Path to, Options.Rename... options) throws IOException {
        FolderRules.beforeRename(from, to, fs);
        TimelineGuard.rename(from, to, fs::listStatus, () -> {
            DataFiles.require(to, this);
            super.rename(from, to, options);
            return true;
        });
    }

    @Override
    public boolean mkdirs(Path path) throws IOException {
        return FolderRules.isDeferred(path) || fs.mkdirs(path);
    }

    @Override
    public boolean mkdirs(Path path, FsPermission permission) throws IOException {
        return FolderRules.isDeferred(path) || fs.mkdirs(path, permission);
    }

    @Override
    protected boolean primitiveMkdir(Path path, FsPermission permission) throws IOException {
        return FolderRules.isDeferred(path) || super.primitiveMkdir(path, permission);
    }

    @Override
    public boolean delete(Path path, boolean recursive) throws IOException {
        FolderRules.beforeDelete(path, recursive, fs);
        return TimelineGuard.delete(path, () -> fs.delete(path, recursive));
    }

    @Override
    public void copyFromLocalFile(boolean deleteSource, Path from, Path to) throws IOException {
        DataFiles.require(to, this);
        TimelineGuard.refuse("copyFromLocalFile", to);
        fs.copyFromLocalFile(deleteSource, from, to);
    }

    @Override
    public void copyFromLocalFile(boolean deleteSource, boolean overwrite, Path[] from, Path to) throws IOException {
        DataFiles.require(to, this);
        TimelineGuard.refuse("copyFromLocalFile", to);
        fs.copyFromLocalFile(deleteSource, overwrite, from, to);
    }

    @Override
    public void copyFromLocalFile(boolean deleteSource, boolean overwrite, Path from, Path to) throws IOException {
        DataFiles.require(to, this);
        TimelineGuard.refuse("copyFromLocalFile", to);
        fs.copyFromLocalFile(deleteSource, overwrite, from, to);
    }

    @Override
    public Path startLocalOutput(Path to, Path temporary) throws IOException {
        TimelineGuard.refuse("startLocalOutput", to);
        return fs.startLocalOutput(to, temporary);
    }

    @Override
    public void completeLocalOutput(Path to, Path temporary) throws IOException {
        TimelineGuard.refuse("completeLocalOutput", to);
        fs.completeLocalOutput(to, temporary);
    }

    @Override
    public void createSymlink(Path target, Path link, boolean createParent) throws IOException {
        TimelineGuard.refuse("createSymlink", link);
        fs.createSymlink(target, link, createParent);
    }

    @Override
    public MultipartUploaderBuilder createMultipartUploader(Path base) throws IOException {
        TimelineGuard.refuse("createMultipartUploader", base);
        return fs.createMultipartUploader(base);
    }
}
