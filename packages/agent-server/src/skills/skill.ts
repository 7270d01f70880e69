import path from 'node:path';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { textHead, textTail } from '@slipway/common/well-formed-text.js';
import type { NewEvent } from '../engine/agent-engine.js';
import { conversationFailure } from '../engine/limits.js';

export type SkillTrigger =
  /** A user's message with one of these words. */
  | { kind: 'words'; words: string[] }
  /** Work on files that match one of these globs. */
  | { kind: 'paths'; globs: string[] };

export interface Skill {
  name: string;
  content: string;
  source: string | null;
  description: string | null;
  /** A null trigger puts an older skill into every prompt; one of the AgentSkills form is then read on demand. */
  trigger: SkillTrigger | null;
  /** Whether it is a `SKILL.md` in a folder of its own (https://agentskills.io/specification). */
  isAgentSkill: boolean;
  /** Not offered to the model, only given when it is triggered. */
  isHidden: boolean;
}

export interface SkillProblem {
  file: string;
  reason: string;
}

export interface FoundSkills {
  skills: Skill[];
  problems: SkillProblem[];
}

/** The skill's first trigger word that a message has as a whole word, in any case; null if there is none. */
export function matchedWord({ trigger }: Skill, message: string): string | null {
  const words = trigger?.kind === 'words' ? trigger.words : [];
  const text = message.toLowerCase();
  return words.find((word) => hasWord(text, word.toLowerCase())) ?? null;
}

/** The skills of all lists; of two with the same name, the first. */
export function mergeSkills(...lists: readonly (readonly Skill[])[]): Skill[] {
  const byName = new Map<string, Skill>();
  for (const skill of lists.flat()) {
    if (!byName.has(skill.name)) {
      byName.set(skill.name, skill);
    }
  }
  return [...byName.values()];
}

/** Whole words only: `github` does not have the word `git`. */
function hasWord(text: string, word: string): boolean {
  let at = word === '' ? -1 : text.indexOf(word);
  while (at !== -1 && (isAlphanumeric(text[at - 1]) || isAlphanumeric(text[at + word.length]))) {
    at = text.indexOf(word, at + 1);
  }
  return at !== -1;
}

function isAlphanumeric(character: string | undefined): boolean {
  return character !== undefined && /[a-z0-9]/.test(character);
}

const MAX_RULES = 60_000;
const MAX_LISTED = 100;
const MAX_DESCRIPTION = 500;
const MAX_TRIGGERED = 60_000;

/** What the system prompt says about skills; null if there are none. */
export function skillsPrompt(skills: readonly Skill[], model: string): string | null {
  const parts = [
    rulesPart(skills.filter((skill) => isAlwaysGiven(skill) && isMeantFor(skill, model))),
    listPart(skills.filter((skill) => !skill.isHidden && !isAlwaysGiven(skill))),
    pathsPart(skills),
  ];
  return parts.filter((part) => part !== '').join('\n\n') || null;
}

export interface TriggeredSkills {
  names: string[];
  text: string;
}

/** @param known names of skills that were given before */
export function triggeredSkills(
  skills: readonly Skill[],
  message: string,
  known: readonly string[],
): TriggeredSkills | null {
  const names: string[] = [];
  const parts: string[] = [];
  let left = MAX_TRIGGERED;
  for (const skill of skills) {
    const word = known.includes(skill.name) ? null : matchedWord(skill, message);
    if (word !== null && skill.content.length <= left) {
      left -= skill.content.length;
      names.push(skill.name);
      parts.push(
        `<EXTRA_INFO>\nThis was added because the message has "${word}". Use it where it helps.\n${locationOf(skill)}\n${skill.content}\n</EXTRA_INFO>`,
      );
    }
  }
  return names.length === 0 ? null : { names, text: parts.join('\n') };
}

/** Instructions for a file of a folder, by its absolute path. */
export function skillsForFile(
  skills: readonly Skill[],
  folder: string,
  file: string,
  known: readonly string[],
): TriggeredSkills | null {
  const name = path.posix.relative(folder, file);
  const matching = skills.filter(
    ({ trigger, ...skill }) =>
      trigger?.kind === 'paths' &&
      !known.includes(skill.name) &&
      skill.content.length <= MAX_TRIGGERED &&
      trigger.globs.some((glob) => isCheap(glob) && path.posix.matchesGlob(name, anywhere(glob))),
  );
  const texts = matching.map(
    (skill) =>
      `<EXTRA_INFO>\nInstructions of the repository for files such as ${oneLine(name)}. Follow them as those in REPO_CONTEXT.\n${locationOf(skill)}${skill.content}\n</EXTRA_INFO>`,
  );
  return texts.length === 0
    ? null
    : { names: matching.map((skill) => skill.name), text: textHead(texts.join('\n'), MAX_TRIGGERED) };
}

/** A repository may write any glob, and some take for ever: those with many stars, or with groups within groups. */
function isCheap(glob: string): boolean {
  const parts = glob.split('/');
  return (
    parts.filter((part) => part === '**').length <= 3 &&
    parts.every((part) => part === '**' || part.split('*').length <= 4) &&
    glob.split('{').length <= 4 &&
    !/\{[^}]*\{|\.\.|\(/.test(glob)
  );
}

/** A name without a folder is one in any of them. */
function anywhere(glob: string): string {
  const plain = glob.replace(/^\.?\//, '');
  return plain.includes('/') ? plain : `**/${plain}`;
}

function isAlwaysGiven({ trigger, isAgentSkill }: Skill): boolean {
  return trigger === null && !isAgentSkill;
}

/** Rules written for one vendor's models, and the models of others that they are not given to. */
const OTHER_MODELS: ReadonlyMap<string, RegExp> = new Map([
  ['claude', /gemini|gpt|openai/i],
  ['gemini', /claude|anthropic|gpt|openai/i],
]);

function isMeantFor({ name }: Skill, model: string): boolean {
  return OTHER_MODELS.get(name)?.test(model) !== true;
}

function rulesPart(skills: readonly Skill[]): string {
  let left = MAX_RULES;
  const parts = skills.map(({ name, content, source }) => {
    const shown = textHead(content, left);
    left -= shown.length;
    const note =
      shown.length === content.length
        ? ''
        : `\n[${content.length - shown.length} characters left out${source === null ? '' : `: see ${source}`}]`;
    return `[BEGIN context from ${name}]\n${shown}${note}\n[END context]`;
  });
  return parts.length === 0
    ? ''
    : `<REPO_CONTEXT>\nInstructions that come with the repository. Follow them for work in it, as far as they do not contradict the user or the rules above.\n\n${parts.join('\n\n')}\n</REPO_CONTEXT>`;
}

function listPart(skills: readonly Skill[]): string {
  const entries = skills
    .slice(0, MAX_LISTED)
    .map(
      (skill) =>
        `- ${oneLine(skill.name)}: ${textHead(oneLine(skill.description ?? firstLine(skill.content)), MAX_DESCRIPTION)}${
          skill.source === null ? '' : ` (${skill.source})`
        }`,
    );
  return entries.length === 0
    ? ''
    : `<available_skills>\nKnowledge for certain tasks. Read the file of a skill before you work on what it is for.\n${entries.join('\n')}\n</available_skills>`;
}

function pathsPart(skills: readonly Skill[]): string {
  const entries = skills.flatMap(({ trigger, source }) =>
    trigger?.kind === 'paths' && source !== null
      ? [`- ${trigger.globs.map(oneLine).join(', ')}: ${source}`]
      : [],
  );
  return entries.length === 0
    ? ''
    : `<path_rules>\nInstructions for some files only. They come with the first result of file_editor for a file that matches; read them before you change such a file otherwise.\n${entries.slice(0, MAX_LISTED).join('\n')}\n</path_rules>`;
}

function firstLine(content: string): string {
  return (
    content
      .split('\n')
      .map((line) => line.trim())
      .find((line) => line !== '' && !line.startsWith('#')) ?? ''
  );
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function locationOf({ source }: Skill): string {
  return source === null ? '' : `It is in ${source}; paths in it are relative to that.\n`;
}

const CODE = 'SkillUnreadable';
/** Further ones are only counted. */
const MAX_TOLD = 20;
const MAX_PATH = 500;

/** The events that name left-out skills and the reasons, unless the log has them already; the conversation goes on. */
export function skillProblemEvents(
  problems: readonly SkillProblem[],
  log: readonly AgentEvent[],
): NewEvent[] {
  const told = problems
    .slice(0, MAX_TOLD)
    .map(({ file, reason }) => `The skill ${toPrintable(file)} is left out: ${reason}.`);
  const more = problems.length - told.length;
  const details = more > 0 ? [...told, `${more} further skills are left out too.`] : told;
  const known = new Set(
    log.flatMap((event) =>
      event.kind === 'ConversationErrorEvent' && event.code === CODE ? [event.detail] : [],
    ),
  );
  return details.filter((detail) => !known.has(detail)).map((detail) => conversationFailure(CODE, detail));
}

/** File names come from the repository. */
function toPrintable(file: string): string {
  return textTail(file.replaceAll(/\p{Cc}+/gu, ' '), MAX_PATH);
}
