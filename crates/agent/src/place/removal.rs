//! Taking a file away, so that it can be put back as it was.

use super::*;

/// Kinds of entries that can be set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
}

/// A file that is out of sight under another name beside its place. Dropping it changes nothing: it has to be discarded or
/// put back.
#[derive(Debug)]
pub struct SetAside<'a> {
    place: &'a Place,
    name: OsString,
}

impl SetAside<'_> {
    /// Temporary name of the entry.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Removes it for good.
    pub fn discard(self) -> Result<(), PlaceError> {
        Ok(unlinkat(&self.place.directory, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir)?)
    }

    /// Gives it its name back, unless something else has that name by now.
    pub fn put_back(self) -> Result<(), PlaceError> {
        if self.place.exists() {
            return Err(Errno::EEXIST.into());
        }
        let directory = &self.place.directory;
        Ok(renameat(directory, self.name.as_os_str(), directory, self.place.name.as_os_str())?)
    }
}

impl Place {
    /// Opens the entry at this absolute path. Unlike with [`Self::anywhere`] that may be a symbolic
    /// link; links on the way are followed.
    pub fn entry(path: &Path) -> Result<Self, PlaceError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(PlaceError::NotAFile(path.display().to_string()));
        };
        let directory = nix::fcntl::open(parent, DIRECTORY, Mode::empty())?;
        Ok(Self { directory, name: name.to_owned(), shown: path.display().to_string() })
    }

    /// Returns true if there is an entry at the place.
    pub fn exists(&self) -> bool {
        fstatat(&self.directory, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW).is_ok()
    }

    /// Moves the file out of sight. It must be a regular file or a symbolic link.
    pub fn set_aside(&self) -> Result<SetAside<'_>, PlaceError> {
        self.kind()?;
        // The draft keeps the name free for the file.
        let (name, _) = self.draft()?;
        let moved = renameat(&self.directory, self.name.as_os_str(), &self.directory, name.as_os_str());
        if let Err(error) = moved {
            let _ = unlinkat(&self.directory, name.as_os_str(), UnlinkatFlags::NoRemoveDir);
            return Err(error.into());
        }
        Ok(SetAside { place: self, name })
    }

    /// Returns the kind of the entry. A directory, a pipe or a device is an error.
    pub fn kind(&self) -> Result<EntryKind, PlaceError> {
        let stat = fstatat(&self.directory, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)?;
        match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFREG => Ok(EntryKind::File),
            SFlag::S_IFLNK => Ok(EntryKind::Link),
            _ => Err(PlaceError::NotAFile(self.shown.clone())),
        }
    }

    /// Removes the directory at the place if it is empty.
    pub fn remove_empty_directory(&self) -> Result<(), PlaceError> {
        Ok(unlinkat(&self.directory, self.name.as_os_str(), UnlinkatFlags::RemoveDir)?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(dir: &Path) -> Vec<OsString> {
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_or_link_is_put_back_as_it_was_or_discarded() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
        symlink("nowhere", &link).unwrap();
        for path in [&file, &link] {
            let place = Place::entry(path).unwrap();
            let aside = place.set_aside().unwrap();
            assert!(!place.exists() && fs::symlink_metadata(path).is_err());
            aside.put_back().unwrap();
            assert_eq!(names(dir.path()), ["file", "link"]);
        }
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o751);
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("nowhere"));
        Place::entry(&link).unwrap().set_aside().unwrap().discard().unwrap();
        assert_eq!(names(dir.path()), ["file"]);
    }

    #[test]
    fn a_file_is_not_put_back_over_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "old").unwrap();
        let place = Place::entry(&path).unwrap();
        let aside = place.set_aside().unwrap();
        fs::write(&path, "new").unwrap();
        assert!(aside.put_back().is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(dir.path()).len(), 2);
    }

    #[test]
    fn directories_and_nothing_are_not_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let (full, empty) = (dir.path().join("full"), dir.path().join("empty"));
        fs::create_dir_all(full.join("x")).unwrap();
        fs::create_dir(&empty).unwrap();
        assert!(matches!(Place::entry(&full).unwrap().set_aside(), Err(PlaceError::NotAFile(_))));
        assert!(Place::entry(&dir.path().join("none")).unwrap().set_aside().unwrap_err().is_not_found());
        assert!(Place::entry(&full).unwrap().remove_empty_directory().is_err());
        Place::entry(&empty).unwrap().remove_empty_directory().unwrap();
        assert_eq!(names(dir.path()), ["full"]);
    }
}
