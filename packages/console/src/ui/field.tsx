import { type ComponentProps, type ReactNode, useId } from 'react';

interface Labelled {
  label: string;
  hint?: ReactNode;
}

/** The browser fills in no secrets. */
export function TextField({ label, hint, ...rest }: Labelled & ComponentProps<'input'>) {
  const own = rest.type === 'password' ? { autoComplete: 'off', spellCheck: false } : {};
  return <Field label={label} hint={hint} draw={(ids) => <input {...own} {...rest} {...ids} />} />;
}

export function SelectField({ label, hint, ...rest }: Labelled & ComponentProps<'select'>) {
  return <Field label={label} hint={hint} draw={(ids) => <select {...rest} {...ids} />} />;
}

export function TextArea({ label, hint, ...rest }: Labelled & ComponentProps<'textarea'>) {
  return <Field label={label} hint={hint} draw={(ids) => <textarea {...rest} {...ids} />} />;
}

interface FieldProps extends Labelled {
  draw: (ids: { id: string; 'aria-describedby': string | undefined }) => ReactNode;
}

function Field({ label, hint, draw }: FieldProps) {
  const id = useId();
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {draw({ id, 'aria-describedby': hintId })}
      {hintId !== undefined && (
        <p id={hintId} className="hint">
          {hint}
        </p>
      )}
    </div>
  );
}

/** The choices of a select, as value and name. */
export function Options({ of }: { of: Iterable<readonly [value: string, name: string]> }) {
  return [...of].map(([value, name]) => (
    <option key={value} value={value}>
      {name}
    </option>
  ));
}
