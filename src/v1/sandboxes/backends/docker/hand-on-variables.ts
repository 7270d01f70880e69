import type { ContainerCreateOptions } from 'dockerode';

const LIST = 'SLIPWAY_TOOL_VARIABLES=';
/** For our agent server itself and not for tools, or not for anybody to read. */
const KEPT_BACK = /^(NODE_|LD_|OH_|SLIPWAY_)|KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i;

/**
 * Lets tools have what the image says of itself (`JAVA_HOME`, `RUSTUP_HOME`): our agent server hands on to them what it
 * knows by name, and what this list names.
 *
 * @param variables of the image, as `NAME=value`
 */
export function handOnVariables(
  options: ContainerCreateOptions,
  variables: readonly string[],
): ContainerCreateOptions {
  const own = options.Env ?? [];
  const before = own.find((variable) => variable.startsWith(LIST))?.slice(LIST.length);
  const names = variables
    .map((variable) => variable.split('=', 1)[0] ?? '')
    .filter((name) => name !== '' && !KEPT_BACK.test(name));
  const listed = [...(before?.split(',') ?? []), ...names];
  return {
    ...options,
    Env: [...own.filter((variable) => !variable.startsWith(LIST)), `${LIST}${listed.join(',')}`],
  };
}
