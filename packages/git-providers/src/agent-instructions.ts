import type { ProbedRepository, RepositoryActivity } from './git-provider.js';

export interface InstructionFiles {
  repository: string;
  rootEntries: readonly string[];
  /** File names in the folder, as in `skills`; empty when it is absent. */
  microagents: readonly string[];
  skills: readonly string[];
}

/** Root files that coding agents read, in lower case. */
const ROOT_FILES: ReadonlySet<string> = new Set([
  'agents.md',
  'agent.md',
  'claude.md',
  'gemini.md',
  '.cursorrules',
  '.openhands_instructions',
]);

/** Repositories that hold the instructions of a whole organisation. */
const INSTRUCTION_REPOSITORIES: ReadonlySet<string> = new Set(['.openhands', 'openhands-config']);

/** What a folder has at its top; null when that is unknown. */
export type ReadFolder = { names: string[]; complete: boolean } | null;

/** Folders to read for {@link probedFrom}, the root first. */
export const INSTRUCTION_FOLDERS = ['', '.openhands/microagents', '.openhands/skills'];

/**
 * Returns null when the instructions are unknown, or when the repository is empty or gone, so that nothing can be added to
 * it.
 */
export function probedFrom(
  repository: RepositoryActivity,
  [root, microagents, skills]: readonly ReadFolder[],
): ProbedRepository | null {
  if (!root || !microagents || !skills || root.names.length === 0) {
    return null;
  }
  const found = hasAgentInstructions({
    repository: repository.name,
    rootEntries: root.names,
    microagents: microagents.names,
    skills: skills.names,
  });
  return found || root.complete ? { ...repository, writable: true, hasAgentInstructions: found } : null;
}

/**
 * Whether a repository tells agents how to work in it: a known root file (any case), or a Markdown file other than
 * README in `.openhands/microagents` or `.openhands/skills`. Repositories that exist to hold instructions always
 * count.
 */
export function hasAgentInstructions(files: InstructionFiles): boolean {
  const name = files.repository.slice(files.repository.lastIndexOf('/') + 1).toLowerCase();
  return (
    INSTRUCTION_REPOSITORIES.has(name) ||
    files.rootEntries.some((entry) => ROOT_FILES.has(entry.toLowerCase())) ||
    [...files.microagents, ...files.skills].some(isInstruction)
  );
}

function isInstruction(fileName: string): boolean {
  const name = fileName.toLowerCase();
  return name.endsWith('.md') && name !== 'readme.md';
}
