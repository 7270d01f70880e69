import type { Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { ascending } from '@slipway/common/compare.js';
import { AppConfig } from '../../config/app-config.js';
import { ConfigError, readConfigured } from '@slipway/common/errors/config.error.js';

/** Knowledge that the operator gives to all agents. */
export interface OperatorSkill {
  name: string;
  description: string | null;
  content: string;
  /** A message with one of these words gives the agent the skill; without words, the skill is always in the prompt. */
  triggers: string[];
}

/** The skills in `SKILLS_DIR` at the start of the service, by name. */
@Injectable()
export class OperatorSkills implements OnModuleInit {
  private skills: readonly OperatorSkill[] = [];

  constructor(private readonly config: AppConfig) {}

  async onModuleInit(): Promise<void> {
    const { skillsDir: folder } = this.config.agent;
    if (folder !== null) {
      this.skills = await readOperatorSkills(folder);
    }
  }

  all(): readonly OperatorSkill[] {
    return this.skills;
  }
}

const VARIABLE = 'SKILLS_DIR';
/** Each conversation gets all skills. */
const MAX_SKILLS = 100;
const MAX_CHARACTERS = 1_000_000;
const MAX_NAME = 200;
const MAX_TRIGGERS = 100;

/** Reads `SKILLS_DIR`: each `NAME.md`, and the `SKILL.md` of each folder, with a frontmatter. Throws ConfigError. */
export async function readOperatorSkills(folder: string): Promise<OperatorSkill[]> {
  // The parser is slow to load.
  const { splitFrontmatter } = await import('@slipway/common/frontmatter.js');
  const entries = await readConfigured(VARIABLE, folder, () => readdir(folder, { withFileTypes: true }));
  const files = entries.flatMap((entry) => skillFile(entry) ?? []);
  const skills = await Promise.all(
    files.map(async ({ file, name }) =>
      readConfigured(VARIABLE, path.join(folder, file), async () => {
        const text = await readFile(path.join(folder, file), 'utf8');
        return toSkill(splitFrontmatter(text), name);
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

function toSkill({ head, content }: { head: unknown; content: string }, fileName: string): OperatorSkill {
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
