import type { Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { splitFrontmatter } from '@slipway/common/frontmatter.js';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { ascending } from '../../common/compare.js';
import { ConfigError, readConfigured } from '../../config/config.error.js';
import type { OperatorSkill } from './operator-skills.js';

const VARIABLE = 'SKILLS_DIR';
/** Each conversation gets all skills. */
const MAX_SKILLS = 100;
const MAX_CHARACTERS = 1_000_000;
const MAX_NAME = 200;
const MAX_TRIGGERS = 100;

/** Reads `SKILLS_DIR`: each `NAME.md`, and the `SKILL.md` of each folder, with a frontmatter. Throws ConfigError. */
export async function readOperatorSkills(folder: string): Promise<OperatorSkill[]> {
  const entries = await readConfigured(VARIABLE, folder, () => readdir(folder, { withFileTypes: true }));
  const files = entries.flatMap((entry) => skillFile(entry) ?? []);
  const skills = await Promise.all(
    files.map(async ({ file, name }) =>
      readConfigured(VARIABLE, path.join(folder, file), async () => {
        const text = await readFile(path.join(folder, file), 'utf8');
        return toSkill(text, name);
      }),
    ),
  );
  const size = skills.reduce((sum, { content }) => sum + content.length, 0);
  if (skills.length > MAX_SKILLS || size > MAX_CHARACTERS) {
    throw new ConfigError(
      `SKILLS_DIR: ${folder}: expected at most ${MAX_SKILLS} skills with ${MAX_CHARACTERS} characters in total`,
    );
  }
  const names = new Set(skills.map(({ name }) => name));
  if (names.size < skills.length) {
    throw new ConfigError(`SKILLS_DIR: ${folder}: two skills have the same name`);
  }
  return skills.toSorted((one, other) => ascending(one.name, other.name));
}

function skillFile(entry: Dirent): { file: string; name: string } | null {
  const { name } = entry;
  if (name.startsWith('.')) {
    return null;
  }
  if (entry.isDirectory()) {
    return { file: path.join(name, 'SKILL.md'), name };
  }
  return name.endsWith('.md') && name.toLowerCase() !== 'readme.md'
    ? { file: name, name: name.slice(0, -3) }
    : null;
}

function toSkill(text: string, fileName: string): OperatorSkill {
  const { head, content } = splitFrontmatter(text);
  const name = jsonText(head, 'name') ?? fileName;
  const single = jsonAt(head, 'triggers');
  const triggers = typeof single === 'string' ? [single] : jsonList(head, 'triggers');
  if (name.length > MAX_NAME) {
    throw new TypeError(`its name has more than ${MAX_NAME} characters`);
  }
  if (content === '') {
    throw new TypeError('it is empty');
  }
  const words = triggers.filter((word) => typeof word === 'string' && word.trim() !== '');
  if (words.length < triggers.length || words.length > MAX_TRIGGERS) {
    throw new TypeError(`its triggers must be at most ${MAX_TRIGGERS} non-empty strings`);
  }
  return { name, description: jsonText(head, 'description'), content, triggers: words.map(String) };
}
