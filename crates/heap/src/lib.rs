//! Keeps the process's memory small: one heap for all threads, and free memory goes back to the operating system.
//!
//! The allocator of glibc keeps a heap for each thread and returns only what is free at a heap's end. A long-lived process
//! whose threads hand values to each other ends up with free pages in the middle of each: after 50,000 turns a third of the
//! gateway's memory. These two calls are all its `unsafe` code.

/// Lets all threads share one heap. Each of several would grow to what its thread needs at its busiest, and what one thread frees
/// of another's stands between what is in use. Call it before the first thread is started: a heap that is there stays. Whoever set
/// `MALLOC_ARENA_MAX` has chosen already. Where the allocator has no such function, nothing happens.
pub fn share_one() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os("MALLOC_ARENA_MAX").is_none() {
        // SAFETY: `mallopt` takes numbers and no pointer. It changes a limit that the allocator reads under its own lock.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    }
}

/// Returns the free pages of all heaps. Takes milliseconds on a big heap: call it on a thread that may block. Where the
/// allocator has no such function, nothing happens.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` takes a number and no pointer, and may be called at any time from any thread: it locks each heap
    // while it looks at it (`MT-Safe` in the manual of glibc). What is allocated stays where it is.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    /// Resident memory in KiB.
    #[cfg(target_os = "linux")]
    fn resident() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn free_pages_between_used_ones_go_back() {
        const BLOCKS: usize = 4_096;
        let mut blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|_| vec![1; 16 * 1024]).collect();
        let full = resident();
        // What is left stands in the way of the end of the heap.
        for (n, block) in blocks.iter_mut().enumerate() {
            if n % 4 != 0 {
                *block = Vec::new();
            }
        }
        super::trim();
        let trimmed = resident();
        assert!(full - trimmed > 32 * 1024, "{full} KiB before, {trimmed} KiB after");
        assert_eq!(blocks.iter().filter(|block| !block.is_empty()).count(), BLOCKS / 4);
    }
}
