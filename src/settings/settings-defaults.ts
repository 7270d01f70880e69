/** What a user has who stored nothing yet; the column defaults of the table are the same. */
export const SETTINGS_DEFAULTS = {
  enable_default_condenser: true,
  enable_sound_notifications: false,
  enable_proactive_conversation_starters: true,
  enable_solvability_analysis: true,
} as const;
