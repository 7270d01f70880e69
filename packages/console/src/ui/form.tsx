import { useMutation } from '@tanstack/react-query';
import {
  type ComponentProps,
  createContext,
  type FormEvent,
  type ReactNode,
  use,
  useId,
  useRef,
  useState,
} from 'react';
import { ProblemError } from '../api/client.js';
import { useRefresh } from './actions.js';
import { Button, Callout } from './blocks.js';

/** `member`: what the service calls it, where that is not its label. */
export type Labelled = { label: string; hint?: ReactNode; member?: string };

/** What the service says of fields of the form, by its names of them. */
const Problems = createContext<ReadonlyMap<string, string>>(new Map());

/** Members of the form whose value is not the user's own but the organization's: their fields say so. */
export const Inherited = createContext<readonly string[]>([]);

export const INHERITED = 'Provided by your organization. One of your own takes its place.';

function named(label: string, member: string | undefined): Pick<Labelled, 'label' | 'member'> {
  return member === undefined ? { label } : { label, member };
}

/** The browser fills in no secrets. */
const SECRET = { autoComplete: 'off', spellCheck: false };

export function TextField({ label, hint, member, ...rest }: Labelled & ComponentProps<'input'>) {
  const own = rest.type === 'password' ? SECRET : {};
  return <Field {...named(label, member)} hint={hint} draw={(of) => <input {...own} {...of} {...rest} />} />;
}

export function NumberField(props: Labelled & ComponentProps<'input'>) {
  return <TextField type="number" {...props} />;
}

/** The choices as value and name. */
export type Options = { options: Iterable<readonly [value: string, name: string]> };

export function SelectField({ label, hint, member, options, ...rest }: Labelled & Options & ComponentProps<'select'>) {
  const choices = [...options].map(([value, name]) => <option key={value} value={value} children={name} />);
  const draw = (of: Drawn) => <select {...of} {...rest} children={choices} />;
  return <Field {...named(label, member)} hint={hint} draw={draw} />;
}

export function TextArea({ label, hint, ...rest }: Labelled & ComponentProps<'textarea'>) {
  return <Field label={label} hint={hint} draw={(of) => <textarea {...of} {...rest} />} />;
}

export function CheckField({ label, member = '', ...rest }: Labelled & ComponentProps<'input'>) {
  return (
    <label className="check">
      <input type="checkbox" {...rest} /> {label}
      {use(Inherited).includes(member) && <span className="hint">{INHERITED}</span>}
    </label>
  );
}

export type Choice = { name: string; note?: string };

interface SearchFieldProps extends Labelled {
  placeholder: string;
  value: string;
  onText: (text: string) => void;
  /** What fits the text, the best first. */
  choices: readonly Choice[];
}

/** A text with suggestions; one that is not among them may be typed, too. */
export function SearchField({ onText, choices, ...rest }: SearchFieldProps) {
  const id = useId();
  const options = choices.map(({ name, note }) => <option key={`${name} ${note}`} value={name} children={note} />);
  return (
    <>
      <TextField {...rest} list={id} autoComplete="off" onChange={({ target }) => onText(target.value)} />
      <datalist id={id} children={options} />
    </>
  );
}

type ChecksProps = { legend: string; chosen: readonly string[] | null | undefined; member?: string } & Options;

/** Any number of choices, under one name in the form. */
export function Checks({ legend, options, chosen, member = legend.toLowerCase() }: ChecksProps) {
  const own = legend.toLowerCase();
  const problem = use(Problems).get(member);
  return (
    <fieldset className="checks" data-member={member}>
      <legend>{legend}</legend>
      {[...options].map(([value, name]) => (
        <CheckField key={value} label={name} name={own} value={value} defaultChecked={chosen?.includes(value)} />
      ))}
      <Problem text={problem} />
    </fieldset>
  );
}

function Problem({ id, text }: { id?: string; text: string | undefined }) {
  return text !== undefined && <p id={id} className="bad" role="alert" children={text} />;
}

/** The values of the choices that are ticked. */
export function chosenOf(field: Fields, legend: string): string[] {
  return field(legend.toLowerCase()).split(',').filter(Boolean);
}

type Drawn = { id: string; name: string; 'aria-describedby': string | undefined; 'aria-invalid': boolean };

interface FieldProps extends Labelled {
  draw: (of: Drawn) => ReactNode;
}

/** The field's name in the form is its label in lower case. */
export function Field({ label, hint, draw, member = label.toLowerCase().replaceAll(' ', '_') }: FieldProps) {
  const id = useId();
  const problem = use(Problems).get(member);
  const isInherited = use(Inherited).includes(member);
  const notes = [problem && `${id}-problem`, hint !== undefined && `${id}-hint`, isInherited && `${id}-source`];
  const describedBy = notes.filter(Boolean).join(' ') || undefined;
  const isInvalid = problem !== undefined;
  return (
    <div className="field" data-member={member}>
      <label htmlFor={id}>{label}</label>
      {draw({ id, name: label.toLowerCase(), 'aria-describedby': describedBy, 'aria-invalid': isInvalid })}
      <Problem id={`${id}-problem`} text={problem} />
      {hint !== undefined && <p id={`${id}-hint`} className="hint" children={hint} />}
      {isInherited && <p id={`${id}-source`} className="hint" children={INHERITED} />}
    </div>
  );
}

/** The fields of a filter, which works while they are filled in. */
export function useFilter<T extends Record<string, string>>(all: T) {
  const [filter, setFilter] = useState(all);
  const bind = (name: keyof T) => ({
    value: filter[name],
    onChange: ({ target }: { target: { value: string } }) => setFilter({ ...filter, [name]: target.value }),
  });
  return [filter, bind, setFilter] as const;
}

interface FormProps {
  /** Screen readers, and tests, find the form by it. */
  name: string;
  submit: string;
  look?: 'primary' | 'danger';
  /** Gets the fields by their names, trimmed; resolves to what is said then, if anything. */
  onSubmit: (field: Fields) => Promise<string | { warning: string } | void>;
  /** What was sent stays in the fields. */
  keeps?: boolean;
  isBusy?: boolean;
  /** Beside the button. */
  actions?: ReactNode;
  children: ReactNode;
}

export type Fields = (name: string) => string;

/** A form that shows that it works, what it has done, and why it failed. It is emptied when that went well. */
export function Form({ name, submit, onSubmit, children, ...rest }: FormProps) {
  const { look = 'primary', keeps = false, isBusy = false, actions } = rest;
  const refresh = useRefresh();
  const form = useRef<HTMLFormElement>(null);
  const [problems, setProblems] = useState<ReadonlyMap<string, string>>(new Map());
  const sent = useMutation({
    mutationFn: onSubmit,
    onSuccess: async (_said, sentFields) => {
      await refresh();
      // What was typed meanwhile stays.
      const now = form.current;
      if (now && !keeps && [...new FormData(now).keys()].every((field) => fieldsOf(now)(field) === sentFields(field))) {
        now.reset();
        // React does not hear of that: another choice would be sent than the one that is shown.
        now.querySelectorAll('select').forEach((each) => each.dispatchEvent(new Event('change', { bubbles: true })));
      }
    },
    onError: (error) => setProblems(problemsOf(error, form.current)),
    onMutate: () => setProblems(new Map()),
    meta: { showsErrors: true },
  });
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    sent.mutate(fieldsOf(event.currentTarget));
  };
  return (
    <form ref={form} aria-label={name} name={name} onSubmit={send} className="form">
      <Problems value={problems}>{children}</Problems>
      {sent.isError && problems.size === 0 && <Callout kind="error" text={sent.error.message} />}
      {typeof sent.data === 'object' && <Callout kind="warning" text={sent.data.warning} />}
      <div className="actions">
        <Button type="submit" look={look} isBusy={sent.isPending || isBusy} text={submit} />
        {actions}
        <span role="status" className="done">
          {typeof sent.data === 'string' ? sent.data : null}
        </span>
      </div>
    </form>
  );
}

/** An entry of a list is wrong in the field of the list. */
function memberOf(loc: readonly unknown[]): string {
  return loc.map(String).findLast((part) => !/^\d+$/.test(part)) ?? '';
}

/** What is wrong with each field; nothing where something is wrong with what has no field here. */
function problemsOf(error: Error, form: HTMLFormElement | null): ReadonlyMap<string, string> {
  const { detail } = error instanceof ProblemError ? error.refusal : {};
  const found = new Map((Array.isArray(detail) ? detail : []).map(({ loc, msg }) => [memberOf(loc), msg]));
  const isShown = [...found.keys()].every((member) => form?.querySelector(`[data-member="${CSS.escape(member)}"]`));
  return isShown ? found : new Map();
}

export function fieldsOf(form: HTMLFormElement): Fields {
  const data = new FormData(form);
  return (name) =>
    data
      .getAll(name)
      .map((value) => (typeof value === 'string' ? value.trim() : ''))
      .join(',');
}

/** Returns null for a number that was left out. */
export function amountOf(field: Fields, name: string): number | null {
  return field(name) === '' ? null : Number(field(name));
}

/** Leaves out empty members. */
export function given<T extends Record<string, string>>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== '')) as Partial<T>;
}
