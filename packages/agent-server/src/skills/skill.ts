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
  /** Null: an older skill is always part of the prompt, and one of the AgentSkills form is read on demand. */
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

/** `SkillInfo` of the published API. */
export function toSkillInfo(skill: Skill): Record<string, unknown> {
  const { name, content, source, description, trigger, isAgentSkill, isHidden } = skill;
  return {
    name,
    type: isAgentSkill ? 'agentskills' : trigger === null ? 'repo' : 'knowledge',
    content,
    triggers: trigger?.kind === 'words' ? trigger.words : [],
    source,
    description,
    is_agentskills_format: isAgentSkill,
    disable_model_invocation: isHidden,
  };
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
