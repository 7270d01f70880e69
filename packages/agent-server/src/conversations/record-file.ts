import { open, readFile, rename } from 'node:fs/promises';
import { jsonText } from '@slipway/common/json-access.js';
import type { ConversationRecord } from './conversation-record.js';

/** The file of a conversation's record. Writes one version at a time and skips those that are replaced meanwhile. */
export class RecordFile {
  readonly #file: string;
  #pending: ConversationRecord | null = null;
  #writing: Promise<void> | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  async read(): Promise<ConversationRecord> {
    const record: unknown = JSON.parse(await readFile(this.#file, 'utf8'));
    if (!isRecord(record)) {
      throw new Error('the file is not a conversation record');
    }
    // An earlier version may have written the file.
    return {
      ...record,
      kind: record.kind ?? 'native',
      memory: record.memory ?? {},
      agentDetails: record.agentDetails ?? null,
      activatedSkills: record.activatedSkills ?? [],
      tags: record.tags ?? {},
      navigations: record.navigations ?? [],
    };
  }

  /** Resolves once this record, or a newer one, is on disk. */
  async save(record: ConversationRecord): Promise<void> {
    this.#pending = record;
    while (this.#pending !== null) {
      this.#writing ??= this.#writePending().finally(() => {
        this.#writing = null;
      });
      await this.#writing;
    }
    await this.#writing;
  }

  async #writePending(): Promise<void> {
    const record = this.#pending;
    this.#pending = null;
    if (record !== null) {
      await this.#replace(record);
    }
  }

  /** Replaces the file atomically: readers see the old record or the new one. */
  async #replace(record: ConversationRecord): Promise<void> {
    const temporary = `${this.#file}.new`;
    const handle = await open(temporary, 'w', 0o600);
    try {
      await handle.writeFile(JSON.stringify(record));
      await handle.datasync();
    } finally {
      await handle.close();
    }
    await rename(temporary, this.#file);
  }
}

/** Only this class writes the file, so the check only has to detect damage. */
function isRecord(value: unknown): value is ConversationRecord {
  return jsonText(value, 'id') !== null && jsonText(value, 'status') !== null;
}
