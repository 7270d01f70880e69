import { rm, stat } from 'node:fs/promises';
import { z } from 'zod';
import type { FileEditorAction, FileEditorObservation, ToolDefinition } from '../../agent-protocol/events.js';
import { errorCode, errorMessage } from '../../common/errors/error-message.js';
import { clipText } from '../clipped-text.js';
import { SchemaTool } from './schema-tool.js';
import { changedLines, insertAfter, numberedLines, replaceUnique } from './text-edits.js';
import { type ToolContext, ToolInputError } from './tool.js';
import { listFolder, readTextFile, workspacePath, writeTextFile } from './workspace-files.js';

/** Longer contents are left out of the event: the log would hold every version of a large file twice. */
const MAX_EVENT_CONTENT = 200_000;

const schema = z.object({
  command: z.enum(['view', 'create', 'str_replace', 'insert', 'undo_edit']),
  path: z.string().min(1).describe('Absolute, or relative to the workspace.'),
  file_text: z.string().nullish().describe('For `create`: the whole content.'),
  old_str: z.string().nullish().describe('For `str_replace`: text that stands exactly once in the file.'),
  new_str: z.string().nullish().describe('For `str_replace` and `insert`: the new text.'),
  insert_line: z
    .number()
    .int()
    .min(0)
    .nullish()
    .describe('For `insert`: the line after which new_str is put; 0 is before the first.'),
  view_range: z
    .array(z.number().int())
    .nullish()
    .describe('For `view` of a file: first and last line, from 1; -1 as the last means the end.'),
});

type Input = z.output<typeof schema>;

interface Outcome {
  text: string;
  before: string | null;
  after: string | null;
}

/** Shows and changes text files of the workspace. */
export class FileEditorTool extends SchemaTool<typeof schema> {
  readonly name = 'file_editor';
  readonly description =
    'View, create and edit text files of the workspace. `view` shows a file with line numbers or lists a folder, ' +
    '`create` writes a new file or replaces one, `str_replace` replaces text that stands exactly once, `insert` puts ' +
    'text after a line, `undo_edit` takes the last edit of a file back.';
  readonly needsConfirmation = true;
  readonly schema = schema;
  readonly #history = new EditHistory();

  toAction(input: Input): FileEditorAction {
    return { kind: 'FileEditorAction', ...input };
  }

  async run(input: Input, { workingDir }: ToolContext): Promise<FileEditorObservation> {
    try {
      const path = await workspacePath(workingDir, input.path);
      const { text, before, after } = await this.#execute(input, path);
      const changed = input.command !== 'view';
      return {
        ...observe(input, path, clipText(text), false),
        prev_exist: !changed || before !== null,
        old_content: changed ? unlessTooLong(before) : null,
        new_content: changed ? unlessTooLong(after) : null,
      };
    } catch (error) {
      if (error instanceof ToolInputError || errorCode(error) !== undefined) {
        return observe(input, input.path, errorMessage(error), true);
      }
      throw error;
    }
  }

  definition(): ToolDefinition {
    return {
      kind: 'FileEditorTool',
      title: this.name,
      description: this.description,
      action_type: 'FileEditorAction',
      observation_type: 'FileEditorObservation',
    };
  }

  async #execute(input: Input, path: string): Promise<Outcome> {
    switch (input.command) {
      case 'view':
        return await view(path, input.view_range ?? null);
      case 'create':
        return await this.#write(path, await readTextFile(path), required(input.file_text, 'file_text'));
      case 'str_replace': {
        const content = await existing(path);
        const old = required(input.old_str, 'old_str');
        return await this.#write(path, content, replaceUnique(content, old, input.new_str ?? ''));
      }
      case 'insert': {
        const content = await existing(path);
        const line = required(input.insert_line, 'insert_line');
        return await this.#write(
          path,
          content,
          insertAfter(content, line, required(input.new_str, 'new_str')),
        );
      }
      default:
        return await this.#undo(path);
    }
  }

  async #write(path: string, before: string | null, after: string): Promise<Outcome> {
    await writeTextFile(path, after);
    this.#history.add({ path, before, after });
    const text = before === null ? `Created ${path}.` : `Edited ${path}:\n${changedLines(before, after)}`;
    return { text, before, after };
  }

  /** Reverts the last edit of this tool, provided that nobody has changed the file since. */
  async #undo(path: string): Promise<Outcome> {
    const edit = this.#history.last(path);
    if (edit === null) {
      throw new ToolInputError(`There is no edit of ${path} to take back.`);
    }
    const current = await readTextFile(path);
    if (current !== edit.after) {
      throw new ToolInputError(`${path} was changed since its last edit; nothing was taken back.`);
    }
    if (edit.before === null) {
      await rm(path);
    } else {
      await writeTextFile(path, edit.before);
    }
    this.#history.remove(edit);
    const text = edit.before === null ? `Removed ${path} again.` : `Took the last edit of ${path} back.`;
    return { text, before: current, after: edit.before };
  }
}

async function view(path: string, range: number[] | null): Promise<Outcome> {
  const stats = await stat(path).catch(() => null);
  if (stats?.isDirectory()) {
    return { text: await listFolder(path), before: null, after: null };
  }
  return { text: numberedLines(await existing(path), range), before: null, after: null };
}

async function existing(path: string): Promise<string> {
  const content = await readTextFile(path);
  if (content === null) {
    throw new ToolInputError(`${path} does not exist.`);
  }
  return content;
}

function observe(input: Input, path: string, text: string, isError: boolean): FileEditorObservation {
  return {
    kind: 'FileEditorObservation',
    content: [{ type: 'text', text }],
    is_error: isError,
    command: input.command,
    path,
    prev_exist: true,
  };
}

function unlessTooLong(content: string | null): string | null {
  return content !== null && content.length <= MAX_EVENT_CONTENT ? content : null;
}

function required<T>(value: T | null | undefined, name: string): T {
  if (value === null || value === undefined) {
    throw new ToolInputError(`This command needs ${name}.`);
  }
  return value;
}

/** Size of all remembered edits together. */
const MAX_HISTORY_CHARACTERS = 20_000_000;

interface Edit {
  path: string;
  /** null: the file did not exist. */
  before: string | null;
  after: string;
}

/** The edits that can be undone; the oldest are dropped when they grow too large. */
class EditHistory {
  readonly #edits: Edit[] = [];
  #characters = 0;

  add(edit: Edit): void {
    this.#edits.push(edit);
    this.#characters += sizeOf(edit);
    while (this.#characters > MAX_HISTORY_CHARACTERS) {
      const oldest = this.#edits.shift();
      this.#characters -= oldest === undefined ? this.#characters : sizeOf(oldest);
    }
  }

  /** The last edit of a file; null if none is known. */
  last(path: string): Edit | null {
    return this.#edits.findLast((edit) => edit.path === path) ?? null;
  }

  remove(edit: Edit): void {
    const index = this.#edits.indexOf(edit);
    if (index !== -1) {
      this.#edits.splice(index, 1);
      this.#characters -= sizeOf(edit);
    }
  }
}

function sizeOf({ before, after }: Edit): number {
  return (before?.length ?? 0) + after.length;
}
