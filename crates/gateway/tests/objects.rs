//! Objects from files: read, watched, and never half of them.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod followed;

use std::fs;
use std::time::{Duration, Instant};

use evenkeel_engine::controller::Objects;
use evenkeel_gateway::objects::{DirectorySource, Fixed, ObjectSource};
use followed::{Followed, level};

async fn next(source: &mut DirectorySource) -> Result<Vec<String>, String> {
    let objects = source.next().await.map_err(|error| error.to_string())?;
    Ok(names(&objects))
}

/// The levels that the files have; behind them come the mandatory ones.
fn names(objects: &Objects) -> Vec<String> {
    let mut names: Vec<_> = objects.priority_levels.iter().map(|level| level.name().to_owned()).collect();
    assert_eq!(names.split_off(names.len() - 2), ["exempt", "catch-all"]);
    names
}

#[tokio::test]
async fn the_files_of_a_folder_are_read_in_order_and_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (file, name) in
        [("b.yml", "two"), ("a.yaml", "one"), (".hidden.yaml", "hidden"), ("c.json.bak", "bak"), ("notes.txt", "other")]
    {
        fs::write(folder.path().join(file), level(name, 1)).unwrap();
    }
    fs::create_dir(folder.path().join("deeper.yaml")).unwrap();
    assert_eq!(next(&mut DirectorySource::new(folder.path())).await, Ok(vec!["one".to_owned(), "two".to_owned()]));
    let file = folder.path().join("notes.txt");
    assert_eq!(next(&mut DirectorySource::new(&file)).await, Ok(vec!["other".to_owned()]), "a file may have any name");
}

#[tokio::test]
async fn the_problems_of_all_files_are_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.yaml"), level("one", 1)).unwrap();
    fs::write(path("b.yaml"), level("one", 2)).unwrap();
    fs::write(path("c.yaml"), level("three", 1).replace("nominalConcurrencyShares", "shares")).unwrap();
    std::os::unix::fs::symlink("nowhere", path("d.yaml")).unwrap();
    let error = next(&mut DirectorySource::new(folder.path())).await.unwrap_err();
    let folder = folder.path().display();
    let lines: Vec<_> = error.lines().collect();
    let expected = [
        format!("{folder}/d.yaml: No such file"),
        format!(
            "{folder}/b.yaml:1:1: PriorityLevelConfiguration \"one\": is also defined in {folder}/a.yaml:1:1; keep one of them"
        ),
        format!("{folder}/c.yaml:7:5: PriorityLevelConfiguration \"three\": spec.limited.shares: unknown field"),
    ];
    assert_eq!(lines.len(), expected.len(), "{error}");
    for (line, expected) in lines.iter().zip(&expected) {
        assert!(line.starts_with(expected), "{line}\nis not\n{expected}");
    }
}

#[tokio::test]
async fn a_path_that_does_not_exist_is_told_and_then_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("objects");
    let mut source = DirectorySource::new(&path);
    let error = next(&mut source).await.unwrap_err();
    assert!(error.ends_with("name a manifest or a directory of manifests"), "{error}");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("a.yaml"), level("one", 1)).unwrap();
    // The folder may be seen before its file is.
    while next(&mut source).await != Ok(vec!["one".to_owned()]) {}
}

#[tokio::test]
async fn what_stays_the_same_is_not_told_and_a_dropped_future_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, level("one", 1)).unwrap();
    let mut source = DirectorySource::new(folder.path());
    next(&mut source).await.unwrap();
    fs::write(&file, level("one", 1)).unwrap();
    fs::write(&file, format!("# a comment\n{}", level("one", 1))).unwrap();
    fs::write(folder.path().join("notes.txt"), "nothing").unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(300), next(&mut source)).await;
    assert!(quiet.is_err(), "{quiet:?}");
    fs::write(&file, level("two", 1)).unwrap();
    for _ in 0..40 {
        if let Ok(told) = tokio::time::timeout(Duration::from_millis(3), next(&mut source)).await {
            // Somebody with more patience would have been told the same.
            assert_eq!(told, Ok(vec!["two".to_owned()]));
            return;
        }
    }
    assert_eq!(next(&mut source).await, Ok(vec!["two".to_owned()]));
}

#[tokio::test]
async fn fixed_objects_are_told_once() {
    let mut source = Fixed::new(evenkeel_api::Preset::Kubernetes.into());
    assert_eq!(source.next().await.unwrap().priority_levels.len(), 8);
    assert!(tokio::time::timeout(Duration::from_millis(20), source.next()).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_file_changes_nothing_and_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, level("one", 1)).unwrap();
    let mut followed = Followed::new(folder.path());
    followed.until(|flow| flow == ["one"]).await;
    // At once: a file that is being written may be read while it is empty, which is no mistake.
    let new = folder.path().join(".a.yaml.swp");
    fs::write(&new, level("two", 1).replace("shares", "shraes").replace("Shares", "Shraes")).unwrap();
    fs::rename(&new, &file).unwrap();
    let error = followed.error().await;
    assert!(error.starts_with(&format!("{}:7:5: PriorityLevelConfiguration \"two\"", file.display())), "{error}");
    assert_eq!(followed.levels(), ["one"]);
    fs::write(&file, level("two", 1)).unwrap();
    followed.until(|flow| flow == ["two"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_saved_governs_within_100_ms() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, level("one", 1)).unwrap();
    let mut followed = Followed::new(folder.path());
    followed.until(|flow| flow == ["one"]).await;
    let mut times = Vec::new();
    for number in 0..21 {
        let name = format!("level-{number}");
        if number % 2 == 0 {
            fs::write(&file, level(&name, 1)).unwrap();
        } else {
            let new = folder.path().join(".a.yaml.swp");
            fs::write(&new, level(&name, 1)).unwrap();
            fs::rename(&new, &file).unwrap();
        }
        let start = Instant::now();
        followed.until(|flow| flow == [&*name]).await;
        times.push(start.elapsed());
    }
    times.sort();
    println!("from saving to governing: median {:?}, longest {:?}", times[10], times[20]);
    // The median: a busy machine may hold up one of them, but not half of them.
    assert!(times[10] < Duration::from_millis(100), "{times:?}");
}
