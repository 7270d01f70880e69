import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loaded } from './problem.js';

interface RowsProps<T> {
  query: UseQueryResult<T[]>;
  /** What is listed, for people who wait for it. */
  name: string;
  /** What is said where there is none. */
  empty: string;
  children: (item: T) => ReactNode;
}

/** A list that is loaded. */
export function Rows<T>({ query, name, empty, children }: RowsProps<T>) {
  return (
    <Loaded query={query} name={name} empty={empty}>
      {(items) => <ul className="rows">{items.map(children)}</ul>}
    </Loaded>
  );
}

interface RowProps {
  title: ReactNode;
  facts?: ReactNode;
  /** Its buttons. */
  children?: ReactNode;
  /** Below the row. */
  more?: ReactNode;
}

export function Row({ title, facts, children, more }: RowProps) {
  return (
    <li className="row">
      <div className="row-main">
        <div className="row-title">{title}</div>
        <div className="row-facts">{facts}</div>
      </div>
      {children}
      <div className="row-more">{more}</div>
    </li>
  );
}

interface TableProps {
  name: string;
  /** A last one without a name has buttons. */
  columns: string[];
  rows: { key: string; cells: ReactNode[] }[];
}

export function Table({ name, columns, rows }: TableProps) {
  return (
    <div className="scroller" role="region" aria-label={name} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column === '' ? <span className="visually-hidden">Actions</span> : column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells }) => (
            <tr key={key}>
              {cells.map((cell, index) => (
                <td key={columns[index]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type Tone = 'good' | 'bad' | 'busy' | 'calm' | 'warn';

const TONES: Record<Tone, string[]> = {
  busy: ['running', 'starting', 'pending', 'working'],
  warn: ['waiting_for_confirmation', 'partial', 'stale', 'degraded'],
  good: ['finished', 'ready', 'ok', 'delivered'],
  bad: ['error', 'stuck', 'failed'],
  calm: [],
};

/** A state in words; its colour only repeats them. */
export function Badge({ state }: { state: string }) {
  const name = state.toLowerCase();
  const [tone] = Object.entries(TONES).find(([, states]) => states.includes(name)) ?? ['calm'];
  return <span className={`badge ${tone}`}>{name.replaceAll('_', ' ')}</span>;
}
