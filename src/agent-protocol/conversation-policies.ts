/** Which tool calls wait for the user. */
export type ConfirmationPolicy =
  | { kind: 'NeverConfirm' }
  | { kind: 'AlwaysConfirm' }
  | {
      kind: 'ConfirmRisky';
      /** Calls of this risk and above wait. */
      threshold: 'LOW' | 'MEDIUM' | 'HIGH' | 'UNKNOWN';
      /** Calls of unknown risk wait too. */
      confirm_unknown: boolean;
    };

/** Who judges the risk of a tool call: with `LLMSecurityAnalyzer` the model itself. */
export interface SecurityAnalyzer {
  kind: string;
}
