//! Gives memory that is free back to the operating system.
//!
//! The allocator of glibc keeps a heap for each thread and returns only what is free at a heap's end. A long-lived process
//! whose threads hand values to each other ends up with free pages in the middle of each: after 50,000 turns a third of the
//! gateway's memory. This is the only crate with `unsafe` code, and this call is all it does.

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
