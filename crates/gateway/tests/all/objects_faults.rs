//! Whatever is done to the folder, in whatever order and however badly: in the end, what it holds governs.
use crate::followed;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use evenkeel_api::decode::{Manifest, Strictness};
use followed::{Followed, level};

/// Random numbers from a seed that a failure shows.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Does one thing to the folder.
fn disturb(folder: &Path, dice: &mut Dice) {
    let number = dice.roll(4);
    let file = folder.join(format!("{number}.yaml"));
    let text = level(&format!("level-{number}-{}", dice.roll(50)), 1);
    match dice.roll(8) {
        0 => fs::write(&file, text).unwrap(),
        1 => {
            // As an editor does it.
            let new = folder.join(format!(".{number}.yaml.swp"));
            fs::write(&new, text).unwrap();
            fs::rename(&new, &file).unwrap();
        }
        2 => drop(fs::remove_file(&file)),
        3 => {
            // A part, and the rest a little later.
            let mut writer = File::create(&file).unwrap();
            let (one, other) = text.split_at(usize::try_from(dice.roll(text.len() as u64)).unwrap());
            writer.write_all(one.as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(dice.roll(30)));
            writer.write_all(other.as_bytes()).unwrap();
        }
        4 => fs::write(&file, &text[..usize::try_from(dice.roll(text.len() as u64)).unwrap()]).unwrap(),
        5 => {
            let (target, link) = (folder.join(format!("{number}.target")), folder.join(format!(".{number}.link")));
            fs::write(&target, text).unwrap();
            let _ = fs::remove_file(&link);
            symlink(&target, &link).unwrap();
            fs::rename(&link, &file).unwrap();
        }
        6 => drop(fs::rename(&file, folder.join(format!("{}.yaml", dice.roll(4))))),
        _ => {
            // The whole folder is exchanged.
            let away = folder.with_extension("away");
            fs::rename(folder, &away).unwrap();
            fs::create_dir(folder).unwrap();
            for entry in away.read_dir().unwrap().map(Result::unwrap) {
                let _ = fs::rename(entry.path(), folder.join(entry.file_name()));
            }
            fs::remove_dir_all(&away).unwrap();
        }
    }
}

/// What the folder holds, if all of it is good.
fn held(folder: &Path) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for entry in folder.read_dir().unwrap().map(Result::unwrap) {
        if entry.path().extension().is_some_and(|ending| ending == "yaml") {
            let text = fs::read(entry.path()).ok()?;
            let manifest = Manifest::read("held", &text, Strictness::Strict).ok()?;
            names.extend(manifest.entries.iter().map(|entry| entry.object.name().to_owned()));
        }
    }
    names.sort();
    let count = names.len();
    names.dedup();
    (count == names.len()).then_some(names)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_the_folder_what_it_holds_governs_in_the_end() {
    for seed in 1..=8_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("objects");
        fs::create_dir(&folder).unwrap();
        let mut followed = Followed::new(&folder);
        for _ in 0..4 {
            let steps = 1 + dice.roll(12);
            let path = folder.clone();
            dice = tokio::task::spawn_blocking(move || {
                for _ in 0..steps {
                    disturb(&path, &mut dice);
                    std::thread::sleep(Duration::from_millis(dice.roll(25)));
                }
                dice
            })
            .await
            .unwrap();
            println!("seed {seed}: {:?}", held(&folder));
            if let Some(names) = held(&folder) {
                followed.until(|levels| levels == names).await;
            }
        }
        // And then somebody puts it right.
        for entry in folder.read_dir().unwrap().map(Result::unwrap) {
            fs::remove_file(entry.path()).unwrap();
        }
        fs::write(folder.join("a.yaml"), level("right", 1)).unwrap();
        followed.until(|levels| levels == ["right"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_map_is_exchanged_as_a_whole() {
    let volume = tempfile::tempdir().unwrap();
    let path = |name: &str| volume.path().join(name);
    let put = |version: &str| {
        fs::create_dir(path(version)).unwrap();
        fs::write(path(version).join("a.yaml"), level(&format!("one-{}", &version[2..]), 1)).unwrap();
        symlink(version, path("..data_tmp")).unwrap();
        fs::rename(path("..data_tmp"), path("..data")).unwrap();
    };
    put("..1");
    symlink("..data/a.yaml", path("a.yaml")).unwrap();
    let file = path("a.yaml");
    for source in [volume.path(), &file] {
        let mut followed = Followed::new(source);
        for number in 2..6 {
            let version = format!("..{}{number}", source.components().count());
            put(&version);
            let name = format!("one-{}", &version[2..]);
            followed.until(|levels| levels == [&*name]).await;
        }
    }
}
