import path from 'node:path';
import { splitFrontmatter } from '@slipway/common/frontmatter.js';
import { jsonAt } from '@slipway/common/json-access.js';
import { textHead } from '@slipway/common/well-formed-text.js';
import type { Skill, SkillTrigger } from './skill.js';

export interface SkillFile {
  /**
   * `rules`: instructions for any agent, such as `AGENTS.md`; `rule`: those in the form of another agent, whose name begins
   * theirs; `unread`: it has the reason as its content.
   */
  kind: 'rules' | 'rule' | 'skill' | 'unread';
  file: string;
  /** Relative to the repository for rules, to the folder of skills for skills. */
  name: string;
  content: string;
}

/** Names of the files that have rules, in lower case, and the names of their skills. */
const RULES: Record<string, string> = {
  '.cursorrules': 'cursorrules',
  '.windsurfrules': 'windsurf',
  '.clinerules': 'cline',
  'copilot-instructions.md': 'copilot',
  'agents.md': 'agents',
  'agent.md': 'agents',
  'claude.md': 'claude',
  'gemini.md': 'gemini',
};
const MAX_NAME = 200;
const MAX_DESCRIPTION = 1_024;
const MAX_TRIGGERS = 50;
const AGENT_SKILL_NAME = /^(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*$/;

/** @throws Error that says why a file that looks like a skill is none */
export function skillFromFile(found: SkillFile, maxBytes: number): Skill {
  if (found.kind === 'unread') {
    throw new Error(found.content);
  }
  if (Buffer.byteLength(found.content) > maxBytes) {
    throw new Error(`it has more than ${maxBytes} bytes`);
  }
  if (found.kind === 'rules') {
    return fromRules(found);
  }
  if (found.kind === 'rule') {
    return fromRule(found);
  }
  // Two bytes that begin a file of UTF-16, read as UTF-8.
  if (found.content.startsWith('\uFFFD\uFFFD')) {
    throw new Error('it is not UTF-8');
  }
  const { head, content } = splitFrontmatter(found.content);
  const isAgentSkill = path.basename(found.file).toLowerCase() === 'skill.md';
  const folder = path.basename(path.dirname(found.file));
  const name = jsonAt(head, 'name') ?? (isAgentSkill ? folder : found.name.replace(/\.[^./]*$/, ''));
  const given = textHead(plainText(name), MAX_NAME);
  if (isAgentSkill && (given !== folder || !AGENT_SKILL_NAME.test(given))) {
    throw new Error('its name must be that of its folder and have lower-case letters, digits and hyphens');
  }
  if (given === '') {
    throw new Error('its name must be a text');
  }
  const trigger = toTrigger(head, given);
  const hidden = jsonAt(head, 'disable-model-invocation') ?? jsonAt(head, 'disable_model_invocation');
  const description = jsonAt(head, 'description');
  return {
    name: given,
    content,
    source: found.file,
    description: typeof description === 'string' ? textHead(description, MAX_DESCRIPTION) : null,
    trigger,
    isAgentSkill,
    isHidden: hidden === true || trigger?.kind === 'paths',
  };
}

/** Rules of a folder below the top are meant for the files in it. */
function fromRules({ file, name, content }: SkillFile): Skill {
  const folder = path.dirname(name);
  const rules = RULES[path.basename(name).toLowerCase()];
  if (rules === undefined) {
    throw new Error('it is not a rules file');
  }
  const isNested = folder !== '.';
  return {
    name: isNested ? `${rules}:${folder}` : rules,
    content,
    source: file,
    description: null,
    trigger: isNested ? { kind: 'paths', globs: [`${folder}/**`] } : null,
    isAgentSkill: false,
    isHidden: isNested,
  };
}

/** Authors write `globs: *.ts`, which is no YAML. */
const BARE_GLOBS = /^(\uFEFF?---[^]*?\n(?:globs|applyTo)[ \t]*:[ \t]*)(\*[^\n\r]*)/;

/** The rule's members tell whether it is given always, for files that match, or on demand. */
function fromRule({ file, name, content: given }: SkillFile): Skill {
  const quoted = given.replace(
    BARE_GLOBS,
    (_, before: string, globs: string) => before + JSON.stringify(globs.trim()),
  );
  const { head, content } = splitFrontmatter(quoted);
  const globs = toTexts(jsonAt(head, 'globs') ?? jsonAt(head, 'applyTo'), 'globs', true);
  const isForAll = globs.some((glob) => glob === '**' || glob === '**/*');
  const isAlways = isForAll || jsonAt(head, 'alwaysApply') === true || name.startsWith('cline:');
  const hasPaths = !isAlways && globs.length > 0;
  const description = jsonAt(head, 'description');
  return {
    name: textHead(name, MAX_NAME),
    content,
    source: file,
    description: typeof description === 'string' ? textHead(description, MAX_DESCRIPTION) : null,
    trigger: hasPaths ? { kind: 'paths', globs } : null,
    isAgentSkill: !isAlways && !hasPaths,
    isHidden: hasPaths,
  };
}

/** Paths take precedence. A skill that has inputs is a task, and `/` with its name triggers it too. */
function toTrigger(head: unknown, name: string): SkillTrigger | null {
  const globs = toTexts(jsonAt(head, 'paths'), 'paths', true);
  if (globs.length > 0) {
    return { kind: 'paths', globs };
  }
  const words = toTexts(jsonAt(head, 'triggers'), 'triggers', false);
  if (jsonAt(head, 'inputs') !== undefined) {
    words.push(...(words.includes(`/${name}`) ? [] : [`/${name}`]));
  }
  return words.length === 0 ? null : { kind: 'words', words };
}

// A single text is a list of one.
function toTexts(value: unknown, member: string, maySplit: boolean): string[] {
  const single = maySplit && typeof value === 'string' ? value.split(',') : [value ?? ''];
  const list: readonly unknown[] = Array.isArray(value) ? value : single;
  if (!list.every(isPlain)) {
    // A skill that lost its triggers would be part of every prompt.
    throw new Error(`${member} must be a list of texts`);
  }
  return list
    .slice(0, MAX_TRIGGERS)
    .map((item) => textHead(plainText(item).trim(), MAX_NAME))
    .filter((text) => text !== '');
}

function isPlain(value: unknown): boolean {
  return ['string', 'number'].includes(typeof value) || value === null;
}

function plainText(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}
