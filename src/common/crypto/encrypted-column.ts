/** Where encrypted records live, so that a new key can be applied to all of them. */
export interface EncryptedColumn {
  table: string;
  column: string;
  /** Columns of the primary key; they identify the row and go into the binding. */
  keyColumns: string[];
  /** The binding of a row's record, given the row's key columns as text. */
  binding(row: Record<string, string>): string;
}
