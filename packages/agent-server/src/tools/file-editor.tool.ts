import { isAbsolute, join } from 'node:path';
import { Readable } from 'node:stream';
import { z } from 'zod';
import type { FileEditorObservation } from '@slipway/agent-protocol/events.js';
import { imageType } from '@slipway/common/well-formed-text.js';
import { clipText } from '../clipped-text.js';
import { nullIf, WorkspaceFileError, WorkspaceFiles } from '../files/workspace-files.js';
import { type ToolView, withHome } from '../tool-view.js';
import {
  decodeText,
  encodeText,
  ENCODING_NAMES,
  lackingCharacter,
  type TextEncoding,
} from '../files/text-encoding.js';
import { BOM, changedLines, insertAfter, numberedLines, replaceUnique } from './text-edits.js';
import { builtInTool, required, type Tool, ToolInputError } from './tool.js';

/** Longer contents are left out of the event: the log would hold every version of a large file twice. */
const MAX_EVENT_CONTENT = 200_000;
const MAX_HISTORY_CHARACTERS = 20_000_000;
/** Larger files must be handled in the terminal. */
const MAX_TEXT_FILE_BYTES = 5 * 1024 * 1024;
/** Larger ones would fill the log: each view is an event. */
const MAX_IMAGE_BYTES = 3 * 1024 * 1024;

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
  path: string;
  text: string;
  before: string | null;
  after: string | null;
  /** A picture, as a data URL. */
  image?: string;
}

/** @param rulesFor what the repository says about a file that is touched */
export function fileEditorTool(
  view: ToolView,
  workArea: string | null = null,
  rulesFor: (file: string) => Promise<string | null> = async () => null,
): Tool {
  const edits = new FileEdits();
  return builtInTool('FileEditor', {
    name: 'file_editor',
    description:
      'View, create and edit text files of the workspace. `view` shows a file with line numbers, a picture (PNG, JPEG, ' +
      'WebP, GIF), or lists a folder, ' +
      '`create` writes a new file or replaces one, `str_replace` replaces text that stands exactly once, `insert` puts ' +
      'text after a line, `undo_edit` takes the last edit of a file back.',
    needsConfirmation: true,
    schema,
    toAction: (input) => ({ kind: 'FileEditorAction', ...input }),
    run: async (input, { workingDir }) => {
      try {
        const file = new TextFile(view, [workingDir, ...(workArea === null ? [] : [workArea])], input.path);
        const { path, text, before, after, image } = await edits.execute(input, file);
        const changed = input.command !== 'view';
        const rules = await rulesFor(path);
        const shown = [
          clipText(text),
          ...edits.untold(path, file.notes),
          ...(rules === null ? [] : [rules]),
        ].join('\n');
        return {
          ...observe(input, path, shown, false, image),
          prev_exist: !changed || before !== null,
          old_content: changed ? unlessTooLong(before) : null,
          new_content: changed ? unlessTooLong(after) : null,
        };
      } catch (error) {
        if (error instanceof ToolInputError || error instanceof WorkspaceFileError) {
          return observe(input, input.path, describe(error, workingDir), true);
        }
        throw error;
      }
    },
  });
}

interface Edit {
  path: string;
  /** The text before the edit; null if the file did not exist. */
  before: string | null;
  after: string;
  /** What it was written in before: a text that is all ASCII by now no longer tells. */
  form: TextForm;
}

interface TextForm {
  encoding: TextEncoding;
  /** Whether the mark of UTF-16 begins it. */
  hasMark: boolean;
}

/** Edits and those that can be taken back, the oldest of which are dropped when they grow too large. */
class FileEdits {
  readonly #edits: Edit[] = [];
  readonly #told = new Set<string>();

  /** What was not said of the file before. */
  untold(path: string, notes: readonly string[]): string[] {
    const texts = notes.map((note) => `[${path} ${note}]`).filter((text) => !this.#told.has(text));
    texts.forEach((text) => this.#told.add(text));
    return texts;
  }

  async execute(input: Input, file: TextFile): Promise<Outcome> {
    switch (input.command) {
      case 'view':
        return await file.view(input.view_range ?? null);
      case 'create':
        return await this.#write(file, await file.read(), required(input.file_text, 'file_text'));
      case 'str_replace': {
        const content = await file.existing();
        const old = required(input.old_str, 'old_str');
        return await this.#write(file, content, replaceUnique(content, old, input.new_str ?? ''));
      }
      case 'insert': {
        const content = await file.existing();
        const line = required(input.insert_line, 'insert_line');
        const text = insertAfter(content, line, required(input.new_str, 'new_str'));
        return await this.#write(file, content, text);
      }
      default:
        return await this.#undo(file);
    }
  }

  async #write(file: TextFile, before: string | null, given: string): Promise<Outcome> {
    const { form } = file;
    const { path, text: after } = await file.write(given);
    this.#edits.push({ path, before, after, form });
    while (sizeOf(this.#edits) > MAX_HISTORY_CHARACTERS) {
      this.#edits.shift();
    }
    const text = before === null ? `Created ${path}.` : `Edited ${path}:\n${changedLines(before, after)}`;
    return { path, text, before, after };
  }

  /** Reverts the last edit of this tool, unless the file has changed since. */
  async #undo(file: TextFile): Promise<Outcome> {
    const path = await file.resolve();
    const edit = this.#edits.findLast((one) => one.path === path);
    if (edit === undefined) {
      throw new ToolInputError(`There is no edit of ${path} to take back.`);
    }
    const current = await file.read();
    if (current !== edit.after) {
      throw new ToolInputError(`${path} was changed since its last edit; nothing was taken back.`);
    }
    if (edit.before === null) {
      await file.remove();
    } else {
      file.form = edit.form;
      await file.write(edit.before);
    }
    this.#edits.splice(this.#edits.indexOf(edit), 1);
    const text = edit.before === null ? `Removed ${path} again.` : `Took the last edit of ${path} back.`;
    return { path, text, before: current, after: edit.before };
  }
}

class TextFile {
  /** What is special about it, after its path. */
  readonly notes: string[] = [];
  form: TextForm = { encoding: 'utf-8', hasMark: false };
  readonly #path: string;
  readonly #files: WorkspaceFiles;

  /** @param roots first that of the conversation */
  constructor(view: ToolView, roots: readonly [string, ...string[]], path: string) {
    const given = withHome(view, path);
    this.#path = isAbsolute(given) ? given : join(roots[0], given);
    this.#files = new WorkspaceFiles(view, roots);
  }

  async resolve(): Promise<string> {
    return await this.#files.resolve(this.#path);
  }

  async view(range: number[] | null): Promise<Outcome> {
    const found = await this.#files.view(this.#path, MAX_TEXT_FILE_BYTES);
    const unchanged = { path: found.path, before: null, after: null };
    if (found.kind === 'file') {
      const image = imageType(found.content.toString('base64', 0, IMAGE_HEAD));
      return image === null
        ? { ...unchanged, text: numberedLines(this.#decode(found.content), range) }
        : { ...unchanged, ...shownImage(found.content, image) };
    }
    const lines = [...found.names, ...(found.isCut ? ['[... more entries left out ...]'] : [])];
    return { ...unchanged, text: lines.join('\n') };
  }

  async read(): Promise<string | null> {
    return await this.existing().catch(nullIf('missing'));
  }

  async existing(): Promise<string> {
    return this.#decode(await this.#files.read(this.#path, MAX_TEXT_FILE_BYTES));
  }

  /** Keeps encoding and mark; returns the text with the mark. @throws ToolInputError if the encoding lacks a character */
  async write(content: string): Promise<{ path: string; text: string }> {
    const { encoding, hasMark } = this.form;
    const text = hasMark && !content.startsWith(BOM) ? BOM + content : content;
    const bytes = encodeText(text, encoding);
    if (bytes === null) {
      throw new ToolInputError(
        `${this.#path} is ${ENCODING_NAMES[encoding]}, which has no "${lackingCharacter(text, encoding)}". Nothing was changed; convert it in the terminal (iconv) if it should have that.`,
      );
    }
    const { path, links } = await this.#files.write(this.#path, Readable.from([bytes]));
    if (links > 1) {
      this.notes.push(`has ${links} names (hard links), which all show what was written`);
    }
    return { path, text };
  }

  /** @throws ToolInputError when the file is not text */
  #decode(bytes: Uint8Array): string {
    const decoded = decodeText(bytes);
    if (decoded === null) {
      throw new ToolInputError(`${this.#path} is a binary file.`);
    }
    const { text, encoding } = decoded;
    this.form = { encoding, hasMark: encoding !== 'utf-8' && text.startsWith(BOM) };
    if (encoding !== 'utf-8') {
      this.notes.push(`is ${ENCODING_NAMES[encoding]}, and is written so`);
    }
    return text;
  }

  async remove(): Promise<void> {
    await this.#files.remove(this.#path);
  }
}

function describe(error: WorkspaceFileError | ToolInputError, workspace: string): string {
  if (!(error instanceof WorkspaceFileError)) {
    return error.message;
  }
  switch (error.failure) {
    case 'outside':
      return `${error.message} ${workspace}.`;
    case 'large':
      return `${error.file} has ${error.size} bytes, more than the ${MAX_TEXT_FILE_BYTES} that this tool reads; use the terminal.`;
    default:
      return `${error.message}.`;
  }
}

/** Characters of base64 that tell the type. */
const IMAGE_HEAD = 48;

function shownImage(content: Buffer, type: string): Pick<Outcome, 'text' | 'image'> {
  const size = `${type}, ${content.length} bytes`;
  return content.length > MAX_IMAGE_BYTES
    ? { text: `A picture (${size}); at most ${MAX_IMAGE_BYTES} bytes are shown: make a smaller copy.` }
    : { text: `A picture (${size}):`, image: `data:${type};base64,${content.toString('base64')}` };
}

function observe(
  input: Input,
  path: string,
  text: string,
  isError: boolean,
  image?: string,
): FileEditorObservation {
  const picture = image === undefined ? [] : [{ type: 'image' as const, image_urls: [image] }];
  return {
    kind: 'FileEditorObservation',
    content: [{ type: 'text', text }, ...picture],
    is_error: isError,
    command: input.command,
    path,
    prev_exist: true,
  };
}

function unlessTooLong(content: string | null): string | null {
  return content !== null && content.length <= MAX_EVENT_CONTENT ? content : null;
}

function sizeOf(edits: readonly Edit[]): number {
  return edits.reduce((sum, { before, after }) => sum + (before?.length ?? 0) + after.length, 0);
}
