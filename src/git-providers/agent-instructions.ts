/** What is known of a repository's files, as plain names without folders. */
export interface InstructionFiles {
  /** Full name of the repository, `owner/name` or deeper. */
  repository: string;
  rootEntries: readonly string[];
  /** Names in `.openhands/microagents`; empty when the folder is absent. */
  microagents: readonly string[];
  /** Names in `.openhands/skills`; empty when the folder is absent. */
  skills: readonly string[];
}

/** Files that coding agents read from the root of a repository, in lower case. */
const ROOT_FILES: ReadonlySet<string> = new Set([
  'agents.md',
  'agent.md',
  'claude.md',
  'gemini.md',
  '.cursorrules',
  '.openhands_instructions',
]);

/** Repositories that hold a whole organisation's instructions, in a layout of their own. */
const INSTRUCTION_REPOSITORIES: ReadonlySet<string> = new Set(['.openhands', 'openhands-config']);

/**
 * Whether a repository tells agents how to work in it: a known file in its root (any case), or a Markdown file
 * other than README in `.openhands/microagents` or `.openhands/skills`. Repositories that exist to hold
 * instructions always count.
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
