import { type ConversationRecord, writeRecord } from './conversation-record.js';

/** Writes the newest record, one write at a time; records that were replaced while one was written are left out. */
export class RecordFile {
  readonly #file: string;
  #waiting: ConversationRecord | null = null;
  #writing: Promise<void> | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  /** Resolves once this record, or a newer one, is on the disk. */
  async save(record: ConversationRecord): Promise<void> {
    this.#waiting = record;
    while (this.#waiting !== null) {
      this.#writing ??= this.#writeWaiting().finally(() => {
        this.#writing = null;
      });
      await this.#writing;
    }
    await this.#writing;
  }

  async #writeWaiting(): Promise<void> {
    const record = this.#waiting;
    this.#waiting = null;
    if (record !== null) {
      await writeRecord(this.#file, record);
    }
  }
}
